"""The form of a new project."""

from collections.abc import Collection
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.gate_plan import EXAMPLE_TEXT
from annotation.models import (
    DataKind,
    Features,
    GateKind,
    Oracle,
    PrivacyUnit,
    Selection,
    UpdatePolicy,
)
from annotation.preset import Preset
from annotation.presets import broken_rules, encoder_installed
from annotation.wording import told
from privacy.normalizers import Normalizer, normalize_text

# Selections each oracle may use; the rest is refused by rule, so the form does not offer it.
OFFERED_SELECTIONS = {
    Oracle.TRUSTED: (Selection.SECRET_SAMPLE, Selection.TOP_C, Selection.RANDOM),
    Oracle.CROWD: (Selection.UNCERTAINTY, Selection.RANDOM),
}

# One text under every rule, so that nobody has to imagine what annotators will read.
NORMALIZER_CHOICES = [
    (rule.value, f"{rule.value}: {rule.summary} (“{normalize_text(EXAMPLE_TEXT, rule)}”)") for rule in Normalizer
]
ALL_CHOICES = {"data_kind": DataKind.choices, "selection": Selection.choices, "features": Features.choices}


class ProjectForm(forms.Form):
    """Everything a new project needs; opened from a preset, whose values are the defaults."""

    name = forms.CharField(
        max_length=120, label=_("Name"), help_text=_("Members see it; the address of the project is made from it.")
    )
    question = forms.CharField(
        max_length=200,
        label=_("Question"),
        help_text=_("The one sentence annotators answer, like: What does this person want?"),
    )
    classes = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}), label=_("Classes"), help_text=_("One per line, 2 to 50.")
    )
    guidelines = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}),
        required=False,
        label=_("Guidelines"),
        help_text=_("Shown one key away."),
    )
    data_kind = forms.ChoiceField(
        choices=ALL_CHOICES["data_kind"],
        label=_("What a record is"),
        help_text=_("Decides what an upload holds and how a record becomes a vector."),
    )
    columns = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}),
        required=False,
        label=_("Columns"),
        help_text=_(
            "For tables, one per line: “amount: 0 to 5000” or “country: NO, SE, DK”. Bounds are public promises."
        ),
    )
    image_height = forms.IntegerField(
        min_value=1,
        max_value=4096,
        required=False,
        label=_("Image height in pixels"),
        help_text=_("Images of another size are bad rows of an upload."),
    )
    image_width = forms.IntegerField(
        min_value=1,
        max_value=4096,
        required=False,
        label=_("Image width in pixels"),
        help_text=_("As for the height."),
    )

    pool_epsilon = forms.FloatField(
        label=_("Epsilon limit of the pool"), help_text=_("The guarantee: no more than this is ever spent on the pool.")
    )
    pool_delta = forms.FloatField(
        label=_("Delta limit of the pool"), help_text=_("Keep it well below one in the number of people.")
    )
    labels_epsilon = forms.FloatField(
        required=False,
        label=_("Epsilon limit of the answers"),
        help_text=_("Protects what each annotator answered from those who get a model."),
    )

    privacy_unit = forms.ChoiceField(
        choices=PrivacyUnit.choices,
        label=_("Unit of privacy"),
        help_text=_("What the guarantee hides: one record, or all that one person gave."),
    )
    gate_kind = forms.ChoiceField(
        choices=GateKind.choices,
        label=_("Gate"),
        help_text=_(
            "On a sample, “k people said this” is literally true; the noisy threshold lets several times as many texts "
            "pass at the same price."
        ),
    )
    normalizer = forms.ChoiceField(
        choices=NORMALIZER_CHOICES,
        label=_("What annotators see of a text"),
        help_text=_("Texts that look alike afterwards count as one: a higher level lets more pass and says less."),
    )
    gate_k = forms.IntegerField(
        required=False,
        label=_("Gate: k"),
        help_text=_("With k-anonymity: a text passes when the sample holds it this often."),
    )
    gate_sampling_rate = forms.FloatField(
        required=False,
        label=_("Gate: sampling rate"),
        help_text=_("With k-anonymity: each record is looked at with this probability, by a secret coin."),
    )
    gate_epsilon = forms.FloatField(
        required=False,
        label=_("Gate: epsilon"),
        help_text=_("With k-anonymity: of one text, and delta follows from k and the rate. Else: of the whole gate."),
    )
    gate_delta = forms.FloatField(
        required=False, label=_("Gate: delta"), help_text=_("With a threshold, which follows from it and epsilon.")
    )
    gate_floor = forms.IntegerField(
        required=False,
        label=_("Gate: floor"),
        help_text=_("With a threshold: what fewer than this many said never passes, whatever the noise."),
    )
    texts_per_contributor = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=100,
        label=_("Gate: texts per contributor"),
        help_text=_("More texts of one person cost that many times more."),
    )
    selection = forms.ChoiceField(
        choices=ALL_CHOICES["selection"],
        label=_("Selection"),
        help_text=_("How it is decided what annotators are asked about, and what that costs."),
    )
    selection_rate = forms.FloatField(
        required=False,
        label=_("Secret sample: rate of the first block"),
        help_text=_("The second block is as large, each further one doubles. A smaller rate makes each model cheaper."),
    )
    block_hours = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=10_000,
        label=_("Secret sample: hours to label a block"),
        help_text=_("Its model is trained then, whatever is answered, so that the time says nothing about the sample."),
    )
    selection_epsilon = forms.FloatField(
        required=False, label=_("Scale of top-c"), help_text=_("Weights are exp(scale × uncertainty).")
    )
    round_size = forms.IntegerField(
        min_value=1,
        max_value=100_000,
        label=_("Questions per round"),
        help_text=_("Asked before anything is ranked anew; larger rounds follow the model less closely."),
    )
    overlap = forms.IntegerField(
        min_value=1,
        max_value=25,
        label=_("People per question"),
        help_text=_("More people agree on better answers and cost as many times the work."),
    )
    labels_per_release = forms.IntegerField(
        min_value=2,
        max_value=1_000_000,
        label=_("New labels per release"),
        help_text=_(
            "A model is trained when so many questions are done, agreed on or not; larger numbers make fewer, better "
            "models."
        ),
    )
    update_policy = forms.ChoiceField(
        required=False,
        choices=[(policy.value, policy.label) for policy in (UpdatePolicy.PER_ROUND, UpdatePolicy.DOUBLING)],
        label=_("When a model is trained"),
        help_text=_("Every training on all labels costs again; when labels double, few trainings do for many labels."),
    )
    maximum_releases = forms.IntegerField(
        min_value=1,
        required=False,
        label=_("At most this many releases"),
        help_text=_("Empty: as many as the budget pays for."),
    )
    training_epsilon = forms.FloatField(
        label=_("Epsilon of one training"), help_text=_("What a release costs; a secret sample makes it cheaper.")
    )
    regularization = forms.FloatField(
        label=_("Regularisation"), help_text=_("Public constant of the summed objective.")
    )
    feature_dimension = forms.IntegerField(
        min_value=2, max_value=4096, label=_("Feature dimension"), help_text=_("Fewer need less noise.")
    )

    features = forms.ChoiceField(
        choices=ALL_CHOICES["features"],
        initial=Features.STANDARD,
        required=False,
        label=_("Features"),
        help_text=_("Declared rules and a public encoder cost nothing; directions found in the pool are paid for."),
    )
    features_epsilon = forms.FloatField(
        required=False,
        label=_("Epsilon of principal directions"),
        help_text=_("With principal directions: spent once, before the first image is read."),
    )

    basic = ("name", "question", "classes", "data_kind", "columns", "image_height", "image_width", "guidelines")
    budgets = ("pool_epsilon", "pool_delta", "labels_epsilon")

    def __init__(self, *args: Any, preset: Preset, **kwargs: Any) -> None:
        kwargs.setdefault("initial", dict(preset.defaults))
        super().__init__(*args, **kwargs)
        self.preset = preset
        self._offer("data_kind", preset.data_kinds)
        self._offer("selection", OFFERED_SELECTIONS[Oracle(preset.oracle)])
        self._offer("features", offered_features(preset))
        if preset.oracle == Oracle.CROWD:
            self.fields["labels_epsilon"].required = True
            unused: tuple[str, ...] = (
                "data_kind",
                "columns",
                "image_height",
                "image_width",
                "selection_epsilon",
                "selection_rate",
                "block_hours",
                "features_epsilon",
            )
        else:
            unused = (
                "labels_epsilon",
                "gate_kind",
                "normalizer",
                "gate_k",
                "gate_sampling_rate",
                "gate_epsilon",
                "gate_delta",
                "gate_floor",
                "texts_per_contributor",
                "privacy_unit",
            )
        for field in unused:
            del self.fields[field]

    def _offer(self, field: str, keys: Collection[str]) -> None:
        choice = self.fields[field]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [(key, label) for key, label in ALL_CHOICES[field] if key in keys]

    def clean_classes(self) -> list[str]:
        """One class a line, blank lines ignored."""
        return [line.strip() for line in self.cleaned_data["classes"].splitlines() if line.strip()]

    def clean_update_policy(self) -> str:
        """Train per round where nothing is chosen."""
        return self.cleaned_data["update_policy"] or UpdatePolicy.PER_ROUND.value

    def clean_features(self) -> str:
        """Take declared rules where nothing is chosen."""
        return self.cleaned_data["features"] or Features.STANDARD.value

    def clean_columns(self) -> list[dict[str, Any]]:
        """Read the declared columns, naming the line that cannot be read."""
        return [
            _declared_column(number, line)
            for number, line in enumerate(self.cleaned_data["columns"].splitlines(), start=1)
            if line.strip()
        ]

    def clean(self) -> dict[str, Any]:
        """Refuse a combination without a proof at the field that breaks the rule."""
        values = self.values() if not self.errors else {}
        if not values:
            return self.cleaned_data
        if values["data_kind"] == DataKind.TABLE and not values.get("columns"):
            self.add_error("columns", _("A table needs its columns, with bounds or categories."))
        if values["data_kind"] == DataKind.IMAGE and not (values.get("image_height") and values.get("image_width")):
            self.add_error("image_height", _("Images need a height and a width."))
        for field, rule in broken_rules(values).items():
            self.add_error(field if field in self.fields else None, told(rule))
        return self.cleaned_data

    def values(self) -> dict[str, Any]:
        """Return the preset's values with those of the form on top."""
        filled = {field: value for field, value in self.cleaned_data.items() if value is not None}
        kind = {"data_kind": self.preset.data_kinds[0], "oracle": self.preset.oracle}
        return {**kind, **self.preset.defaults, **filled}

    def project_values(self) -> dict[str, Any]:
        """Return the keyword arguments of `create_project`."""
        values = self.values()
        return {field: value for field, value in values.items() if field != "oracle"}

    def group(self, names: tuple[str, ...]) -> list[forms.BoundField]:
        """Return the bound fields of a group that this preset has."""
        return [self[name] for name in names if name in self.fields]

    @property
    def basic_fields(self) -> list[forms.BoundField]:
        """What every project needs."""
        return self.group(self.basic)

    @property
    def budget_fields(self) -> list[forms.BoundField]:
        """The limits, which are the guarantee."""
        return self.group(self.budgets)

    @property
    def advanced_fields(self) -> list[forms.BoundField]:
        """The rest, which the preset has filled in."""
        return [self[name] for name in self.fields if name not in (*self.basic, *self.budgets)]


def offered_features(preset: Preset) -> list[Features]:
    """Return the ways to make vectors that this site has and the preset may use."""
    offered = [Features.STANDARD]
    if "text" in preset.data_kinds and encoder_installed():
        offered.append(Features.ENCODER)
    if "image" in preset.data_kinds:
        offered.append(Features.PRINCIPAL)
    return offered


def _declared_column(number: int, line: str) -> dict[str, Any]:
    """Read `name: low to high` or `name: a, b, c`."""
    name, colon, rule = (part.strip() for part in line.partition(":"))
    if not (name and colon and rule):
        raise forms.ValidationError(
            _("Line %(line)d: write “name: low to high” or “name: a, b, c”."), params={"line": number}
        )
    low, middle, high = (part.strip() for part in rule.partition(" to "))
    if not middle:
        categories = [category.strip() for category in rule.split(",") if category.strip()]
        if len(set(categories)) != len(categories):
            raise forms.ValidationError(_("Line %(line)d: a category is named twice."), params={"line": number})
        return {"name": name, "categories": categories}
    try:
        bounds = float(low), float(high)
    except ValueError as error:
        raise forms.ValidationError(_("Line %(line)d: the bounds must be numbers."), params={"line": number}) from error
    if not bounds[0] < bounds[1]:
        raise forms.ValidationError(
            _("Line %(line)d: the lower bound must be below the upper."), params={"line": number}
        )
    return {"name": name, "low": bounds[0], "high": bounds[1]}
