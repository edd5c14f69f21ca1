"""Forms of an upload and of retention."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.conf.locale import LANG_INFO
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_lazy as _

from annotation.choices.form_fields import DecimalMarkField
from annotation.choices.label_types.base import NamesSeveral
from annotation.choices.label_types.catalogue import label_type_of
from annotation.data.readers.guessing import columns_of_classes
from annotation.data.services.mappings import MOST_SKIPPED, ONE_HOT
from annotation.data.services.registered import FORMATS
from annotation.models import Arrival, BadRows, DataKind, DatasetRole, Oracle, PrivacyUnit, Project
from annotation.models.retention import FEWEST_ACTION_DAYS, FEWEST_DAYS, Retention
from dpal.reading.encodings import Encoding
from dpal.reading.formats import TEXTS, Format
from dpal.reading.shapes import FileShape

DELIMITED = (Format.CSV, Format.TSV)
DELIMITERS = [(",", _("comma")), (";", _("semicolon")), ("\t", _("tab")), ("|", _("vertical bar"))]
SEPARATORS = [mark for mark in DELIMITERS if mark[0] != "\t"]
DECIMALS = [(".", "1.5"), (",", "1,5")]
FEATURE = "feature_"


def _encoding(name: str, languages: str) -> str | Promise:
    """Return `name` with the languages it is used for, whose names Django translates."""
    names = [gettext_lazy(LANG_INFO[code]["name"]) for code in languages.split()]
    return format_lazy("{} ({})", name, format_lazy(", ".join(["{}"] * len(names)), *names)) if names else name


ENCODINGS: list[tuple[str, str | Promise]] = [
    ("", _("automatic: byte order mark, else UTF-8")),
    (Encoding.UTF_8.value, "UTF-8"),
    (Encoding.WINDOWS_1252.value, _encoding("Windows-1252", "de fr es")),
    (Encoding.LATIN_1.value, "Latin-1 (ISO 8859-1)"),
    (Encoding.LATIN_9.value, "Latin-9 (ISO 8859-15)"),
    (Encoding.MAC_ROMAN.value, "Mac OS Roman"),
    (Encoding.WINDOWS_1250.value, _encoding("Windows-1250", "pl cs hu")),
    (Encoding.LATIN_2.value, _encoding("ISO 8859-2", "pl cs hu")),
    (Encoding.WINDOWS_1251.value, _encoding("Windows-1251", "ru uk bg")),
    (Encoding.KOI8_R.value, _encoding("KOI8-R", "ru")),
    (Encoding.KOI8_U.value, _encoding("KOI8-U", "uk")),
    (Encoding.WINDOWS_1253.value, _encoding("Windows-1253", "el")),
    (Encoding.GREEK.value, _encoding("ISO 8859-7", "el")),
    (Encoding.WINDOWS_1254.value, _encoding("Windows-1254", "tr")),
    (Encoding.WINDOWS_1255.value, _encoding("Windows-1255", "he")),
    (Encoding.WINDOWS_1256.value, _encoding("Windows-1256", "ar")),
    (Encoding.WINDOWS_1257.value, _encoding("Windows-1257", "et lv lt")),
    (Encoding.WINDOWS_1258.value, _encoding("Windows-1258", "vi")),
    (Encoding.THAI.value, _encoding("Windows-874", "th")),
    (Encoding.SHIFT_JIS.value, _encoding("Shift JIS", "ja")),
    (Encoding.EUC_JP.value, _encoding("EUC-JP", "ja")),
    (Encoding.GB18030.value, _encoding("GB18030, GBK", "zh-hans")),
    (Encoding.BIG5.value, _encoding("Big5", "zh-hant")),
    (Encoding.EUC_KR.value, _encoding("EUC-KR", "ko")),
    (Encoding.UTF_16.value, "UTF-16 (BOM)"),
    (Encoding.UTF_16_LE.value, "UTF-16 LE"),
    (Encoding.UTF_16_BE.value, "UTF-16 BE"),
]


class UploadForm(forms.Form):
    file = forms.FileField(
        label=_("File"),
        help_text=_("CSV, TSV, JSON lines, Excel, Parquet, a Label Studio export, or a zip of images."),
    )
    role = forms.ChoiceField(choices=DatasetRole.choices, label=_("What it is"))
    text_column = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    contributor_column = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    label_column = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    start_epsilon = DecimalMarkField(
        required=False,
        min_value=0,
        label=_("Limit of the private start (ε)"),
        help_text=_("An account of its own with this limit pays for private examples."),
    )
    has_header = forms.BooleanField(
        required=False,
        initial=True,
        label=_("The first line names the columns"),
    )
    encoding = forms.ChoiceField(
        choices=ENCODINGS,
        required=False,
        label=_("Encoding"),
        help_text=_("Choose it where umlauts or accents look wrong."),
    )
    bad_rows = forms.ChoiceField(
        choices=BadRows.choices, widget=forms.RadioSelect, initial=BadRows.KEEP_GOOD, label=_("Bad rows")
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if project.arrival == Arrival.STREAM:
            role = self.fields["role"]
            assert isinstance(role, forms.ChoiceField)
            offered = [DatasetRole.PUBLIC_TEST, DatasetRole.PUBLIC_START]
            role.choices = [(key, label) for key, label in DatasetRole.choices if key in offered]
            del self.fields["start_epsilon"]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        wanted = values.get("role") == DatasetRole.CHARGED_START and "start_epsilon" not in self.errors
        if wanted and values.get("start_epsilon") is None:
            self.add_error("start_epsilon", _("Give the limit that pays for the private start."))
        return values

    def named(self) -> dict[str, Any]:
        named = {key: self.cleaned_data.get(f"{key}_column", "") for key in ("text", "contributor", "label")}
        return {key: column for key, column in named.items() if column}

    def reading(self) -> dict[str, Any]:
        encoding = self.cleaned_data.get("encoding")
        return {"has_header": self.cleaned_data["has_header"]} | ({"encoding": encoding} if encoding else {})


class TableForm(forms.Form):
    address = forms.CharField(
        max_length=1000,
        label=_("Address of the table"),
        help_text=_("Such as file:///folder/table or s3://bucket/table."),
    )
    text_column = forms.CharField(max_length=200, initial="text", label=_("Text"))
    contributor_column = forms.CharField(max_length=200, label=_("Contributor"))
    snapshot_id = forms.IntegerField(
        min_value=0,
        max_value=2**63 - 1,
        required=False,
        label=_("Iceberg snapshot"),
        help_text=_("Empty: the current snapshot."),
    )

    prefix = "table"

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not FORMATS:
            del self.fields["snapshot_id"]
        if project.privacy_unit != PrivacyUnit.CONTRIBUTOR:
            del self.fields["contributor_column"]


class MappingForm(forms.Form):
    one_hot: Sequence[str] = ()

    def __init__(self, *args: Any, project: Project, role: str, shape: FileShape, **kwargs: Any) -> None:
        mapping: Mapping[str, Any] = kwargs.pop("mapping")
        kwargs["initial"] = _initial(mapping, project, shape)
        super().__init__(*args, **kwargs)
        self.declared = [column["name"] for column in project.columns] if project.data_kind == DataKind.TABLE else []
        self._ask_how_it_is_written(shape)
        if shape.format is Format.IMAGES:
            self._ask_what_is_kept(project, shape)
            return
        if project.data_kind == DataKind.TEXT:
            self.fields["text"] = _column(_("Text"), shape.columns)
        for place, name in enumerate(self.declared):
            self.fields[f"{FEATURE}{place}"] = _column(name, shape.columns)
        if project.data_kind == DataKind.IMAGE:
            self.fields["pixels"] = _column(
                _("Pixels as a list"),
                shape.columns,
                required=False,
                help_text=_("Empty: the columns pixel_0, pixel_1 and so on."),
            )
        if role == DatasetRole.POOL:
            self._ask_for_contributor(project, shape)
        else:
            self._ask_for_label(project, shape)
        self._ask_what_is_kept(project, shape)

    def _ask_what_is_kept(self, project: Project, shape: FileShape) -> None:
        if project.oracle == Oracle.CROWD:
            return
        self.fields["id"] = _column(
            _("Your ID"),
            shape.columns,
            required=False,
            help_text=_("Shown beside the record and exported with labels."),
        )
        if shape.format is not Format.IMAGES:
            self.fields["metadata"] = forms.MultipleChoiceField(
                choices=[(name, name) for name in dict.fromkeys(shape.columns) if name],
                required=False,
                widget=forms.CheckboxSelectMultiple,
                label=_("Columns to show beside the record"),
            )

    def _ask_how_it_is_written(self, shape: FileShape) -> None:
        if shape.format is Format.WORKBOOK:
            sheets = [(name, name) for name in shape.sheets]
            self.fields["sheet"] = forms.ChoiceField(choices=sheets, label=_("Sheet of the workbook"))
        if shape.format in (*DELIMITED, Format.WORKBOOK):
            self.fields["has_header"] = forms.BooleanField(required=False, label=_("The first line names the columns"))
            self.fields["skip_rows"] = forms.IntegerField(
                required=False, min_value=0, max_value=MOST_SKIPPED, label=_("Rows to skip before the header")
            )
        if shape.format in DELIMITED:
            self.fields["quoting"] = forms.BooleanField(required=False, label=_('Fields may stand in quotes (")'))
            self.fields["delimiter"] = forms.ChoiceField(choices=DELIMITERS, label=_("Between two fields"))
            self.fields["ragged_rows"] = forms.BooleanField(
                required=False, label=_("Fill short rows with empty cells, cut long ones")
            )
        if self.declared:
            self.fields["decimal"] = forms.ChoiceField(choices=DECIMALS, required=False, label=_("Decimal sign"))
            self.fields["missing"] = forms.CharField(
                required=False,
                max_length=500,
                label=_("Texts that say a value is missing"),
                help_text=_("Separated by commas, such as NA, n/a, -99."),
            )
        if shape.format in TEXTS:
            self.fields["encoding"] = forms.ChoiceField(choices=ENCODINGS, required=False, label=_("Encoding"))

    def _ask_for_contributor(self, project: Project, shape: FileShape) -> None:
        needed = project.privacy_unit == PrivacyUnit.CONTRIBUTOR
        note = _("Stored as a keyed hash only.")
        if needed and project.oracle == Oracle.CROWD:
            note = _("Stored as a keyed hash only.")
        self.fields["contributor"] = _column(_("Contributor"), shape.columns, required=needed, help_text=note)

    def _ask_for_label(self, project: Project, shape: FileShape) -> None:
        self.fields["values"] = forms.CharField(
            required=False,
            widget=forms.Textarea(attrs={"rows": 3}),
            label=_("Labels that are spelled otherwise"),
            help_text=_("One per line, such as neg = negative."),
        )
        if isinstance(label_type_of(project.question_kind, project.settings), NamesSeveral):
            self.fields["separator"] = forms.ChoiceField(
                choices=SEPARATORS, required=False, initial="|", label=_("Between several labels in a cell")
            )
        if shape.format is not Format.TASKS or not shape.controls:
            columns = list(dict.fromkeys(shape.columns))
            self.one_hot = columns_of_classes(project.classes, columns)
            together = [(ONE_HOT, _("a column of 0 and 1 for each class"))] if len(self.one_hot) > 1 else []
            self.fields["label"] = _column(_("Known label"), columns, more=together)
            return
        self.fields["label"] = _column(_("Control that was answered"), shape.controls)
        self.fields["answers"] = forms.ChoiceField(
            choices=[
                ("majority", _("what most people answered")),
                ("ground_truth", _("only answers marked as ground truth")),
            ],
            label=_("Which answers count"),
        )
        self.fields["annotator"] = forms.ChoiceField(
            choices=[("", _("everybody's")), *((name, name) for name in shape.people)],
            required=False,
            label=_("Whose answers count"),
        )

    def mapping(self) -> dict[str, Any]:
        values = {name: value for name, value in self.cleaned_data.items() if value not in ("", [], None)}
        if "values" in values:
            pairs = [line.rpartition("=") for line in values["values"].splitlines() if "=" in line]
            values["values"] = {label.strip(): name.strip() for label, _sign, name in pairs if name.strip()}
        if values.get("label") == ONE_HOT and len(self.one_hot) > 1:
            values["one_hot"] = self.one_hot
            del values["label"]
        if "missing" in values:
            values["missing"] = [text.strip() for text in values["missing"].split(",") if text.strip()]
        features = {
            name: values.pop(f"{FEATURE}{place}")
            for place, name in enumerate(self.declared)
            if f"{FEATURE}{place}" in values
        }
        return values | ({"features": features} if features else {})


def reading_of(data: Mapping[str, Any], shape: FileShape) -> dict[str, Any]:
    reading: dict[str, Any] = {}
    if shape.format in (*DELIMITED, Format.WORKBOOK):
        reading["has_header"] = "has_header" in data
        skipped = str(data.get("skip_rows") or 0)
        reading["skip_rows"] = min(int(skipped), MOST_SKIPPED) if skipped.isdecimal() else 0
    if shape.format in DELIMITED:
        reading["quoting"] = "quoting" in data
        if data.get("delimiter") in dict(DELIMITERS):
            reading["delimiter"] = data["delimiter"]
    if shape.format in TEXTS and data.get("encoding") in dict(ENCODINGS):
        reading["encoding"] = data["encoding"]
    if data.get("sheet") in shape.sheets:
        reading["sheet"] = data["sheet"]
    return reading


def reading_so_far(mapping: Mapping[str, Any], shape: FileShape) -> dict[str, Any]:
    usual = {"has_header": True, "skip_rows": 0, "quoting": True, "delimiter": shape.delimiter, "encoding": ""}
    return usual | {"sheet": shape.sheet} | dict(mapping)


def _initial(mapping: Mapping[str, Any], project: Project, shape: FileShape) -> dict[str, Any]:
    features = mapping.get("features", {})
    places = {f"{FEATURE}{place}": features.get(column["name"]) for place, column in enumerate(project.columns)}
    spelled = mapping.get("values", {})
    values = {"values": "\n".join(f"{label} = {name}" for label, name in spelled.items())} if spelled else {}
    missing = {"missing": ", ".join(mapping["missing"])} if "missing" in mapping else {}
    label = {"label": ONE_HOT} if "one_hot" in mapping else {}
    return {"answers": "majority"} | reading_so_far(mapping, shape) | places | missing | values | label


def _column(
    label: Any,
    columns: Iterable[str],
    *,
    required: bool = True,
    more: Iterable[tuple[str, Any]] = (),
    help_text: Any = "",
) -> forms.ChoiceField:
    choices = [
        ("", _("no column")),
        *((name, name) for name in dict.fromkeys(columns)),
        *more,
    ]
    return forms.ChoiceField(choices=choices, required=required, label=label, help_text=help_text)


LONGEST_DAYS = 36_500
KINDS = {
    "records": (
        _("Records"),
        _("Counted from upload or arrival; content and answers are erased."),
    ),
    "answers": (
        _("Answered questions"),
        _("Counted from the last answer; answers are erased, with experts the record too."),
    ),
    "comments": (
        _("Comments and reports"),
        _("Counted from when they are settled."),
    ),
    "uploads": (_("Reports about uploads"), _("The list of bad rows.")),
    "actions": (
        _("Log of actions"),
        _("At least 90 days."),
    ),
}


class RetentionForm(forms.Form):
    def __init__(self, data: Any = None, *, retention: Retention) -> None:
        super().__init__(data, initial={f"{kind}_days": getattr(retention, f"{kind}_days") for kind in KINDS})
        for kind, (label, help_text) in KINDS.items():
            self.fields[f"{kind}_days"] = forms.IntegerField(
                required=False,
                min_value=FEWEST_ACTION_DAYS if kind == "actions" else FEWEST_DAYS,
                max_value=LONGEST_DAYS,
                label=_("%(kind)s: days") % {"kind": label},
                help_text=help_text,
            )
