"""Forms of the page that opens a project: questions in plain words, and every other setting with its default."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.budget.population_sheets import SharingTerms
from annotation.budget.words import LEVEL_CHOICES, LEVELS
from annotation.choices.account_kind import filter_of
from annotation.choices.cards import ChoiceCards
from annotation.choices.label_types.several import ChooseSeveral
from annotation.choices.presets import PRESETS, Preset
from annotation.data.forms import DELIMITERS, ENCODINGS, SEPARATORS
from annotation.data.readers.detection import DetectedFile
from annotation.data.services.mappings import MOST_SKIPPED
from annotation.models import Arrival, DataKind, Oracle
from annotation.projects.forms.opening import ChoosingForm, PoolProjectForm, StreamProjectForm
from dpal.reading.formats import Format

OWN_LIMIT: Final = "own"
# Taken for given while something else is checked.
ASSUMED = {"name": "-", "question": "-", "classes": "1\n2"}
DATA = ("data_kind", "image_height", "image_width", "columns")
TASK = ("name", "question", "question_kind", "labels_per_record", "classes", "class_descriptions")
KEPT = frozenset({*DATA, *TASK, "guidelines"})
EXACT = ("pool_epsilon", "pool_delta", "labels_epsilon")
ROLES: Final[Mapping[tuple[str, str], tuple[tuple[str, Any], ...]]] = {
    ("pool", DataKind.TEXT): (
        ("", _("Not used")),
        ("text", _("Text")),
        ("contributor", _("Contributor")),
        ("id", _("Your ID")),
        ("shown", _("Shown beside")),
    ),
    ("public", DataKind.TEXT): (("", _("Not used")), ("text", _("Text")), ("label", _("Known label"))),
    ("pool", DataKind.TABLE): (
        ("", _("Not used")),
        ("feature", _("Feature")),
        ("id", _("Your ID")),
        ("shown", _("Shown beside")),
    ),
    ("public", DataKind.TABLE): (("", _("Not used")), ("feature", _("Feature")), ("label", _("Known label"))),
    ("pool", DataKind.IMAGE): (("", _("Not used")), ("pixels", _("Pixels")), ("id", _("Your ID"))),
    ("public", DataKind.IMAGE): (("", _("Not used")), ("pixels", _("Pixels")), ("label", _("Known label"))),
}
MOST_RENAMED: Final = 40


class FilesForm(forms.Form):
    """The files a project begins with."""

    pool = forms.FileField(
        label=_("Private data, not labelled"),
        help_text=_("CSV, TSV, JSON lines, Excel, Parquet, a Label Studio export, or a zip of images."),
    )
    public = forms.FileField(
        required=False,
        label=_("Public examples with labels"),
        help_text=_("Never put private rows here."),
    )


class AnnotatorsForm(forms.Form):
    """Choice of who labels; each answer is a preset."""

    preset = forms.ChoiceField(widget=ChoiceCards, label=_("Who labels?"))

    def __init__(self, *args: Any, offered: Iterable[Preset], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        found = list(offered)
        field = self.fields["preset"]
        assert isinstance(field, forms.ChoiceField)
        assert isinstance(field.widget, ChoiceCards)
        field.choices = [(preset.key, _(preset.title)) for preset in found]
        field.widget.consequences = {preset.key: _(preset.sentence) for preset in found}


class LevelForm(forms.Form):
    """Level of privacy, by name or by exact numbers."""

    level = forms.ChoiceField(
        choices=[*LEVEL_CHOICES, (OWN_LIMIT, _("Exact numbers"))], widget=ChoiceCards, label=_("How much privacy?")
    )


class ReadingForm(forms.Form):
    """Format of a file, where detection was wrong."""

    def __init__(self, *args: Any, detected: DetectedFile, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kind = detected.shape.format
        if kind in (Format.CSV, Format.TSV):
            self.fields["delimiter"] = forms.ChoiceField(choices=DELIMITERS, label=_("Between two fields"))
            self.fields["has_header"] = forms.BooleanField(required=False, label=_("The first line names the columns"))
        if kind in (Format.CSV, Format.TSV, Format.WORKBOOK):
            self.fields["skip_rows"] = forms.IntegerField(
                required=False, min_value=0, max_value=MOST_SKIPPED, label=_("Rows to skip before the header")
            )
        if kind is Format.WORKBOOK:
            sheets = [(name, name) for name in detected.shape.sheets]
            self.fields["sheet"] = forms.ChoiceField(choices=sheets, label=_("Sheet of the workbook"))
        if kind in (Format.CSV, Format.TSV, Format.JSON_LINES, Format.TASKS):
            self.fields["encoding"] = forms.ChoiceField(choices=ENCODINGS, required=False, label=_("Encoding"))
        if "label" in detected.roles.values() and kind is not Format.IMAGES:
            self.fields["separator"] = forms.ChoiceField(
                choices=[("", _("as found")), *SEPARATORS], required=False, label=_("Between several labels in a cell")
            )


def offered_presets(data_kind: str | None, *, from_file: bool) -> list[Preset]:
    """Return the presets for a kind of data, those of a crowd last; those of streams take no file."""
    fitting = [preset for preset in PRESETS.values() if data_kind is None or data_kind in preset.data_kinds]
    found = [preset for preset in fitting if not from_file or arrival_of(preset) == Arrival.POOL]
    return sorted(found, key=lambda preset: preset.oracle == Oracle.CROWD)


def level_of(epsilon: Any) -> str:
    return next(
        (level.key for level in LEVELS if str(epsilon) in (str(level.epsilon), f"{level.epsilon:g}")), OWN_LIMIT
    )


def arrival_of(preset: Preset) -> str:
    return str(preset.defaults.get("arrival", Arrival.POOL))


def draft_form(preset: Preset, draft: Mapping[str, Any], *, assumed: bool = False) -> ChoosingForm:
    """Return the whole form of a draft, bound, with the default of whatever was not typed."""
    form_class: type[ChoosingForm] = StreamProjectForm if arrival_of(preset) == Arrival.STREAM else PoolProjectForm
    known = form_class.known_names()
    typed = {name: value for name, value in draft.items() if name in known}
    if assumed:
        typed |= {name: value for name, value in ASSUMED.items() if not typed.get(name)}
    probe = form_class(preset=preset, initial=typed)
    data = {name: as_sent(_standing(probe, name, field)) for name, field in probe.fields.items()}
    if data.get("labels_per_record") == str(ChooseSeveral.labels_per_record):
        # The default, which a person with two classes has not chosen.
        classes = [line for line in data.get("classes", "").splitlines() if line.strip()]
        data["labels_per_record"] = str(ChooseSeveral.fitting(len(classes) or ChooseSeveral.labels_per_record))
    return form_class(data, preset=preset)


def typed_in(form: ChoosingForm, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a page sent, as it was typed; a box that was on the page and not sent is unticked."""
    found: dict[str, Any] = {}
    for name, field in form.fields.items():
        if isinstance(field, forms.BooleanField):
            found[name] = name in data
        elif name in data:
            found[name] = data[name]
    return found


def forgive_blanks(form: ChoosingForm) -> None:
    """Let nobody be told of what they have not typed yet."""
    for name in [name for name in form.errors if name in form.fields and not form.data.get(name)]:
        del form.errors[name]


def sharing_terms(form: ChoosingForm) -> SharingTerms:
    """Return what decides which limit a draft's project may share; while it is wrong elsewhere, as far as known."""
    values = form.values() if form.is_valid() else {}
    # Blanks are forgiven, and without classes no training has a price.
    if "classes" not in values:
        unit = form.data.get("privacy_unit") or form.initial["privacy_unit"]
        return SharingTerms(unit=str(unit), filter="", epsilon_limit=0.0)
    return SharingTerms(unit=values["privacy_unit"], filter=filter_of(values), epsilon_limit=values["pool_epsilon"])


def as_sent(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "false"
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)


def _standing(probe: ChoosingForm, name: str, field: forms.Field) -> Any:
    """Return what a page would send for a field that nobody touched: of a list its first line."""
    value = probe.get_initial_for_field(field, name)
    return probe.chosen[name] if value is None and name in probe.chosen else value
