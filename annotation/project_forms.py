"""Forms of the admin's pages: projects, people, limits, tokens."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from annotation.gate_plan import EXAMPLE_TEXT, Offer, offers
from annotation.models import (
    DataKind,
    Dataset,
    Features,
    GateKind,
    Oracle,
    PrivacyUnit,
    Project,
    Role,
    Selection,
    UpdatePolicy,
)
from annotation.preset import Preset
from annotation.presets import GATE_FIELDS, broken_rules, encoder_installed
from annotation.services.tokens import Scope
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
SMALLEST_DELTA = 1e-12
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
        help_text=_("A model is trained when so many have come; larger numbers make fewer, better models."),
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


class LabelBudgetForm(forms.Form):
    """How many answers may be asked for, and what they cost."""

    labels_limit = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        label=_("Answers at most"),
        help_text=_("Of all people together."),
    )
    price_per_label = forms.DecimalField(
        required=False, max_digits=10, decimal_places=4, min_value=Decimal("0.0001"), label=_("Price of an answer")
    )
    money_limit = forms.DecimalField(
        required=False, max_digits=12, decimal_places=2, min_value=0, label=_("Money at most")
    )
    currency = forms.RegexField(
        r"^[A-Z]{3}$", required=False, label=_("Currency"), help_text=_("Three letters, like NOK or EUR.")
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {name: getattr(project, name) for name in self.base_fields})
        super().__init__(*args, **kwargs)
        if project.selection == Selection.SECRET_SAMPLE:
            # How many a secret block asks is secret, and stopping at a limit would tell.
            for name in ("labels_limit", "money_limit"):
                self.fields[name].disabled = True
                self.fields[name].help_text = _("Not with a secret sample: stopping would tell how many were asked.")

    def clean(self) -> dict[str, Any]:
        """Ask for a price where money is limited."""
        if self.cleaned_data.get("money_limit") is not None and not self.cleaned_data.get("price_per_label"):
            self.add_error("price_per_label", _("A limit in money needs the price of an answer."))
        return self.cleaned_data


class GatePlanForm(forms.Form):
    """At what price gates are compared, and on what."""

    SYNTHETIC = "synthetic"

    epsilon = forms.FloatField(min_value=0.01, max_value=20, label=_("Epsilon of one upload"))
    delta = forms.FloatField(min_value=SMALLEST_DELTA, max_value=0.1, label=_("Delta of one upload"))
    source = forms.ChoiceField(required=False, label=_("Show what would pass"))

    def __init__(self, *args: Any, project: Project, uploads: Sequence[Dataset], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project
        self.offers: list[Offer] = []
        source = self.fields["source"]
        assert isinstance(source, forms.ChoiceField)
        source.choices = [
            ("", _("no: compare by price alone")),
            (self.SYNTHETIC, _("of a made-up log")),
            *((str(upload.pk), f"{upload.name}: {upload.get_role_display()}") for upload in uploads),
        ]

    def clean(self) -> dict[str, Any]:
        """Find the gates at the price, or say why there are none."""
        if self.errors:
            return self.cleaned_data
        contributor = self.project.privacy_unit == PrivacyUnit.CONTRIBUTOR
        try:
            self.offers = offers(
                self.cleaned_data["epsilon"],
                self.cleaned_data["delta"],
                unit="contributor" if contributor else "record",
                texts_per_contributor=self.project.texts_per_contributor if contributor else None,
            )
        except ValueError as error:
            self.add_error("epsilon", told(str(error)))
        return self.cleaned_data


class GateChoiceForm(forms.Form):
    """The numbers of one gate, as the planner's buttons send them."""

    gate_kind = forms.ChoiceField(choices=GateKind.choices)
    gate_k = forms.IntegerField(required=False, max_value=2**31 - 1)
    gate_sampling_rate = forms.FloatField(required=False)
    gate_epsilon = forms.FloatField()
    gate_delta = forms.FloatField(required=False)
    gate_floor = forms.IntegerField(required=False, max_value=2**31 - 1)
    normalizer = forms.ChoiceField(required=False, choices=[(rule.value, rule.value) for rule in Normalizer])

    def settings(self) -> dict[str, Any]:
        """Return the fields of the kind that was chosen, and the rule for equal texts where one was."""
        kind = self.cleaned_data["gate_kind"]
        rule = {"normalizer": self.cleaned_data["normalizer"]} if self.cleaned_data["normalizer"] else {}
        return rule | {field: self.cleaned_data[field] for field in ("gate_kind", "gate_epsilon", *GATE_FIELDS[kind])}


class MemberForm(forms.Form):
    """Somebody who has an account here, and what they may do."""

    username = forms.CharField(max_length=150, label=_("User name"))
    role = forms.ChoiceField(choices=Role.choices, label=_("Role"))

    def clean_username(self) -> User:
        """Find the person; managers may know who has an account."""
        user = User.objects.filter(username=self.cleaned_data["username"], is_active=True).first()
        if user is None:
            raise forms.ValidationError(_("Nobody has an account under this name."))
        return user


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(max_length=80, label=_("Name"), help_text=_("Where it will be used."))
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.value) for scope in Scope], widget=forms.CheckboxSelectMultiple, label=_("May do")
    )
    days = forms.IntegerField(min_value=1, max_value=366, initial=90, label=_("Days until it ends"))

    def lifetime(self) -> timedelta:
        """Return how long the token lives."""
        return timedelta(days=self.cleaned_data["days"])
