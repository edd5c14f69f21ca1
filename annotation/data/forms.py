"""Forms of an upload and of retention."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.choices.form_fields import DecimalMarkField
from annotation.data.services.mappings import MOST_SKIPPED
from annotation.data.services.registered import FORMATS
from annotation.models import Arrival, BadRows, DataKind, DatasetRole, Oracle, PrivacyUnit, Project
from annotation.models.retention import FEWEST_ACTION_DAYS, FEWEST_DAYS, Retention
from dpal.reading.encodings import Encoding
from dpal.reading.formats import TEXTS, Format
from dpal.reading.shapes import FileShape

DELIMITED = (Format.CSV, Format.TSV)
DELIMITERS = [(",", _("comma")), (";", _("semicolon")), ("\t", _("tab")), ("|", _("vertical bar"))]
DECIMALS = [(".", _("point, as in 1.5")), (",", _("comma, as in 1,5"))]
FEATURE = "feature_"
ENCODINGS = [
    ("", _("by the mark it begins with, else UTF-8")),
    (Encoding.UTF_8.value, "UTF-8"),
    (Encoding.WINDOWS_1252.value, _("Windows-1252 (Western European, as older Excel writes CSV)")),
    (Encoding.LATIN_1.value, "Latin-1 (ISO 8859-1)"),
    (Encoding.LATIN_9.value, "Latin-9 (ISO 8859-15)"),
    (Encoding.MAC_ROMAN.value, "Mac OS Roman"),
    (Encoding.WINDOWS_1250.value, _("Windows-1250 (Central European)")),
    (Encoding.LATIN_2.value, _("ISO 8859-2 (Central European)")),
    (Encoding.WINDOWS_1251.value, _("Windows-1251 (Cyrillic)")),
    (Encoding.KOI8_R.value, _("KOI8-R (Russian)")),
    (Encoding.KOI8_U.value, _("KOI8-U (Ukrainian)")),
    (Encoding.WINDOWS_1253.value, _("Windows-1253 (Greek)")),
    (Encoding.GREEK.value, _("ISO 8859-7 (Greek)")),
    (Encoding.WINDOWS_1254.value, _("Windows-1254 (Turkish)")),
    (Encoding.WINDOWS_1255.value, _("Windows-1255 (Hebrew)")),
    (Encoding.WINDOWS_1256.value, _("Windows-1256 (Arabic)")),
    (Encoding.WINDOWS_1257.value, _("Windows-1257 (Baltic)")),
    (Encoding.WINDOWS_1258.value, _("Windows-1258 (Vietnamese)")),
    (Encoding.THAI.value, _("Windows-874 (Thai)")),
    (Encoding.SHIFT_JIS.value, _("Shift JIS (Japanese)")),
    (Encoding.EUC_JP.value, _("EUC-JP (Japanese)")),
    (Encoding.GB18030.value, _("GB18030, GBK (Simplified Chinese)")),
    (Encoding.BIG5.value, _("Big5 (Traditional Chinese)")),
    (Encoding.EUC_KR.value, _("EUC-KR (Korean)")),
    (Encoding.UTF_16.value, _("UTF-16 with a mark")),
    (Encoding.UTF_16_LE.value, _("UTF-16, low byte first (Windows)")),
    (Encoding.UTF_16_BE.value, _("UTF-16, high byte first")),
]


class UploadForm(forms.Form):
    file = forms.FileField(
        label=_("File"),
        help_text=_(
            "CSV, TSV, JSONL, Parquet, Excel (.xlsx); a Label Studio export (JSON or JSON-MIN); a zip of PNG, JPEG or "
            "WebP for images."
        ),
    )
    role = forms.ChoiceField(choices=DatasetRole.choices, label=_("What it is"))
    text_column = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    contributor_column = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    label_column = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    start_epsilon = DecimalMarkField(
        required=False,
        min_value=0,
        label=_("Private start: limit of its account (ε)"),
        help_text=_(
            "Private examples that start the first model are never asked about or shown: one private training learns "
            "from them, charged to an account of their own with this limit."
        ),
    )
    has_header = forms.BooleanField(
        required=False,
        initial=True,
        label=_("The first line names the columns"),
        help_text=_("Without such a line the columns are called 1, 2, 3 and so on."),
    )
    encoding = forms.ChoiceField(
        choices=ENCODINGS,
        required=False,
        label=_("Encoding of a text file"),
        help_text=_("It is never guessed: choose it where umlauts or accents would come out wrong."),
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
            self.add_error("start_epsilon", _("Give the limit of the account that pays for the private start."))
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
        help_text=_("A Parquet file or a folder of such files: file:///folder/table or s3://bucket/table."),
    )
    text_column = forms.CharField(max_length=200, initial="text", label=_("Column of texts"))
    contributor_column = forms.CharField(
        max_length=200, label=_("Column of contributors"), help_text=_("Read by the gate alone; no name is stored.")
    )
    snapshot_id = forms.IntegerField(
        min_value=0,
        max_value=2**63 - 1,
        required=False,
        label=_("Number of an Iceberg snapshot"),
        help_text=_("Empty takes the current one. Other tables have none."),
    )

    prefix = "table"

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if FORMATS:
            self.fields["address"].help_text = _(
                "A Parquet file, a folder of such files, or an Iceberg table by its folder or a metadata file: "
                "file:///folder/table or s3://bucket/table."
            )
        else:
            del self.fields["snapshot_id"]
        if project.privacy_unit != PrivacyUnit.CONTRIBUTOR:
            del self.fields["contributor_column"]


class MappingForm(forms.Form):
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
                help_text=_("Without it the columns pixel_0, pixel_1 and so on are read."),
            )
        if role == DatasetRole.POOL:
            self._ask_for_contributor(project, shape)
        else:
            self._ask_for_label(shape)
        self._ask_what_is_kept(project, shape)

    def _ask_what_is_kept(self, project: Project, shape: FileShape) -> None:
        if project.oracle == Oracle.CROWD:
            return
        self.fields["id"] = _column(
            _("Your id of a record"),
            shape.columns,
            required=False,
            help_text=_("Kept as it is: annotators see it beside the record, and it stands in every file of labels."),
        )
        if shape.format is not Format.IMAGES:
            self.fields["metadata"] = forms.MultipleChoiceField(
                choices=[(name, name) for name in dict.fromkeys(shape.columns) if name],
                required=False,
                widget=forms.CheckboxSelectMultiple,
                label=_("Columns to show beside the record"),
                help_text=_("Read by people alone: no model learns from them and none is chosen by them."),
            )

    def _ask_how_it_is_written(self, shape: FileShape) -> None:
        if shape.format is Format.WORKBOOK:
            sheets = [(name, name) for name in shape.sheets]
            self.fields["sheet"] = forms.ChoiceField(choices=sheets, label=_("Sheet of the workbook"))
        if shape.format in (*DELIMITED, Format.WORKBOOK):
            self.fields["has_header"] = forms.BooleanField(required=False, label=_("The first line names the columns"))
            self.fields["skip_rows"] = forms.IntegerField(
                required=False, min_value=0, max_value=MOST_SKIPPED, label=_("Rows to skip before the names of columns")
            )
        if shape.format in DELIMITED:
            self.fields["quoting"] = forms.BooleanField(required=False, label=_('Fields may stand in quotes (")'))
            self.fields["delimiter"] = forms.ChoiceField(choices=DELIMITERS, label=_("Between two fields"))
        if self.declared:
            self.fields["decimal"] = forms.ChoiceField(choices=DECIMALS, required=False, label=_("Decimal sign"))
            self.fields["missing"] = forms.CharField(
                required=False,
                max_length=500,
                label=_("Texts that say a value is missing"),
                help_text=_("Separated by commas, such as NA, n/a, -99. An empty cell is always a missing value."),
            )
        if shape.format in TEXTS:
            self.fields["encoding"] = forms.ChoiceField(
                choices=ENCODINGS, required=False, label=_("Encoding of the file")
            )

    def _ask_for_contributor(self, project: Project, shape: FileShape) -> None:
        needed = project.privacy_unit == PrivacyUnit.CONTRIBUTOR
        note = _("Stored as a keyed hash only.")
        if needed and project.oracle == Oracle.CROWD:
            note = _("Needed for a pool here; stored as a keyed hash only.")
        self.fields["contributor"] = _column(_("Contributor"), shape.columns, required=needed, help_text=note)

    def _ask_for_label(self, shape: FileShape) -> None:
        self.fields["values"] = forms.CharField(
            required=False,
            widget=forms.Textarea(attrs={"rows": 3}),
            label=_("Labels that are spelled otherwise"),
            help_text=_("One line each: a label of the file, an equals sign and the class, such as: neg = negative."),
        )
        if shape.format is not Format.TASKS or not shape.controls:
            self.fields["label"] = _column(
                _("Known label"), shape.columns, help_text=_("One of the project's classes.")
            )
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
    return {"answers": "majority"} | reading_so_far(mapping, shape) | places | missing | values


def _column(label: Any, columns: Iterable[str], *, required: bool = True, help_text: Any = "") -> forms.ChoiceField:
    choices = [
        ("", _("choose a column") if required else _("no column")),
        *((name, name) for name in dict.fromkeys(columns)),
    ]
    return forms.ChoiceField(choices=choices, required=required, label=label, help_text=help_text)


LONGEST_DAYS = 36_500
KINDS = {
    "records": (
        _("Records"),
        _(
            "Counted from the upload, of a stream from the day a record came. Each becomes an empty slot: content and "
            "answers go, and no later model learns from it."
        ),
    ),
    "answers": (
        _("Answered questions"),
        _(
            "Counted from the last answer. The answers go, and in a project of experts the record behind the question, "
            "too; that somebody answered stays, because it was paid for. Later models no longer learn from them."
        ),
    ),
    "comments": (
        _("Comments and reports"),
        _("Counted from when they are settled; reasons for skipping, from when a question was skipped."),
    ),
    "uploads": (_("Reports about uploads"), _("The list of bad rows of each upload, and its file if one is left.")),
    "actions": (
        _("Log of actions"),
        _("Who did what. At least 90 days, so that nobody wipes away at once what they did."),
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
