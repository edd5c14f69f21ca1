"""Forms and names of a project's settings, its kind and its classes."""

from typing import Any, Final

from django import forms
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_lazy as _

from annotation.choices import form_fields
from annotation.choices.classes import COLOURS, LONGEST_GROUP, FurtherClass, merged_names, unmerged_classes
from annotation.choices.form_fields import named_field
from annotation.choices.plans import QuestionPlan
from annotation.choices.presets import LONGEST_CLASS, PRESETS
from annotation.data.forms import KINDS
from annotation.errors import InvalidConfiguration
from annotation.models import DataKind, Project
from annotation.projects.forms.opening import PoolProjectForm, StreamProjectForm
from annotation.review.forms import QualityForm
from annotation.wording import class_name, localized

PERCENT: Final = 100
# Shares that their form asks for in percent.
IN_PERCENT: Final = ("gold_share", "gold_warn_below", "gold_pause_below")
CHOICES: Final = {field.attname: dict(field.flatchoices) for field in Project._meta.concrete_fields if field.choices}


def setting_value(setting: str, value: Any) -> str:
    if value in (None, "", [], {}):
        return gettext("none")
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, list):
        return ", ".join(str(item["name"] if isinstance(item, dict) else item) for item in value)
    if setting in ("merged_classes", "renamed_classes"):
        named = merged_names(value) if setting == "merged_classes" else value
        return ", ".join(f"{name} → {now}" for name, now in named.items())
    if setting.endswith("_id"):
        return f"#{value}"
    if setting in IN_PERCENT:
        value *= PERCENT
    if isinstance(value, str) and (words := form_fields.setting_value_label(setting, value)):
        return words
    named = {"changed": gettext("changed")} if setting == "guidelines" else CHOICES.get(setting, {})
    return str(named.get(value, number_format(f"{value:g}") if isinstance(value, float) else value))


class SettingsForm(forms.Form):
    """Settings that touch no guarantee; limits, labelling and quality have pages of their own."""

    name = forms.CharField(max_length=120, label=_("Name"))
    question = forms.CharField(max_length=200, label=_("Question"))
    lease_seconds = named_field(QuestionPlan, "lease_seconds")

    def __init__(self, data: Any = None, *, project: Project) -> None:
        initial = {name: getattr(project, name) for name in self.base_fields}
        super().__init__(data, initial=initial)


FORMS: Final = (SettingsForm, PoolProjectForm, StreamProjectForm, QualityForm)
# Settings that buttons change, or that follow from others.
WITHOUT_FIELD: Final = {
    "oracle": gettext_lazy("Who labels?"),
    "arrival": gettext_lazy("Data source"),
    "state": gettext_lazy("State"),
    "slug": gettext_lazy("Short name of the project"),
    "preset": gettext_lazy("Preset"),
    "pool_account_id": gettext_lazy("Pool account"),
    "labels_account_id": gettext_lazy("Answers account"),
    "configuration_id": gettext_lazy("Version of the configuration"),
    "guidelines_version": gettext_lazy("Version of the guidelines"),
    "merged_classes": gettext_lazy("Merged classes"),
    "renamed_classes": gettext_lazy("Renamed classes"),
    "second_manager": gettext_lazy("A second manager decides about higher limits"),
    "windows_ahead": gettext_lazy("Windows that may wait for answers"),
    "created_at": gettext_lazy("Opened on"),
    "created_by_id": gettext_lazy("Opened by"),
}
PERIODS: Final = {f"keep_{kind}_days": words for kind, (words, _help) in KINDS.items()}


def setting_name(setting: str) -> str:
    if setting in WITHOUT_FIELD:
        return str(WITHOUT_FIELD[setting])
    if setting in PERIODS:
        return gettext("Days for which this is kept: %(what)s") % {"what": PERIODS[setting]}
    found = next((form.base_fields[setting].label for form in FORMS if setting in form.base_fields), None)
    return str(found or form_fields.setting_label(setting) or setting)


def kind_of(project: Project) -> list[tuple[str, str]]:
    names = ("preset", "oracle", "arrival", "privacy_unit")
    return [(setting_name(name), _words(name, getattr(project, name))) for name in names]


def _words(name: str, value: Any) -> str:
    return gettext(PRESETS[value].title) if name == "preset" else setting_value(name, value)


COLOUR_NAMES = {
    "red": _("red"),
    "orange": _("orange"),
    "yellow": _("yellow"),
    "green": _("green"),
    "teal": _("teal"),
    "blue": _("blue"),
    "purple": _("purple"),
    "pink": _("pink"),
    "brown": _("brown"),
    "grey": _("grey"),
}


class BlamedForm(forms.Form):
    def blame(self, error: InvalidConfiguration) -> None:
        """Show each rule that was broken at its field, or above all where no field of the form is to blame."""
        for field, rule in (error.broken or {"": str(error)}).items():
            self.add_error(field if field in self.fields else None, localized(rule))


class FurtherClassForm(BlamedForm):
    name = forms.CharField(
        max_length=LONGEST_CLASS,
        label=_("Name"),
    )
    words = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=_("What belongs to it"),
        help_text=_("One sentence or example per line, written without reading the records."),
    )
    group = forms.CharField(
        required=False,
        max_length=LONGEST_GROUP,
        label=_("Group"),
    )
    colour = forms.ChoiceField(
        required=False,
        choices=[("", _("none")), *((colour, COLOUR_NAMES[colour]) for colour in COLOURS)],
        label=_("Colour"),
    )
    known_beforehand = forms.BooleanField(
        label=_("I know this name without having read the records"),
        help_text=_("Class names are public: add only names known without reading the records."),
    )

    def __init__(self, data: Any = None, *, project: Project) -> None:
        super().__init__(data)
        if project.data_kind != DataKind.TEXT:
            del self.fields["words"]

    def further(self) -> FurtherClass:
        typed = self.cleaned_data
        words = tuple(line.strip() for line in typed.get("words", "").splitlines() if line.strip())
        return FurtherClass(typed["name"], words, typed["group"], typed["colour"])


class RenameForm(BlamedForm):
    name = forms.ChoiceField(label=_("Class"))
    to = forms.CharField(max_length=LONGEST_CLASS, label=_("New name"))
    known_beforehand = forms.BooleanField(
        label=_("I know this name without having read the records"),
        help_text=_("Class names are public: add only names known without reading the records."),
    )

    def __init__(self, data: Any = None, *, project: Project) -> None:
        super().__init__(data)
        choices = [("", _("choose a class")), *((each, class_name(each)) for each in project.classes)]
        self.fields["name"].choices = choices  # type: ignore[attr-defined]


class MergeForm(BlamedForm):
    name = forms.ChoiceField(label=_("Class"))
    into = forms.ChoiceField(label=_("Counts as"))
    known_beforehand = forms.BooleanField(
        label=_("I decided this without reading records or answers"),
        help_text=_("Merges are public: decide without looking at records or answers."),
    )

    def __init__(self, data: Any = None, *, project: Project) -> None:
        super().__init__(data)
        kept = unmerged_classes(project.classes, project.merged_classes)
        for name in ("name", "into"):
            choices = [("", _("choose a class")), *((each, class_name(each)) for each in kept)]
            self.fields[name].choices = choices  # type: ignore[attr-defined]
