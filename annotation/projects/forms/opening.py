"""The form of a new project."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_lazy as _

from annotation.choices.catalogue import offered
from annotation.choices.form_fields import named_field
from annotation.choices.policies.per_round import PerRound
from annotation.choices.preset import Preset
from annotation.choices.presets import broken_rules
from annotation.choices.question_plan import QuestionPlan
from annotation.errors import InvalidConfiguration
from annotation.models import (
    Arrival,
    DataKind,
    Features,
    Oracle,
    PrivacyUnit,
)
from annotation.questions.guidelines import refuse_pictures_of_others
from annotation.wording import localized
from privacy.choices import Kind


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
        widget=forms.Textarea(attrs={"rows": 4}), label=_("Classes"), help_text=_("One per line, 2 to 1,000.")
    )
    guidelines = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}),
        required=False,
        label=_("Guidelines"),
        help_text=_("Markdown, shown beside each question."),
    )
    data_kind = forms.ChoiceField(
        choices=DataKind.choices,
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
        help_text=_(
            "Protects each single answer, which might have been any other, from those who get a model. Who gave ten "
            "answers is protected by ten times this."
        ),
    )

    privacy_unit = forms.ChoiceField(
        choices=PrivacyUnit.choices,
        label=_("Unit of privacy"),
        help_text=_("What the guarantee hides: one record, or all that one person gave."),
    )
    gate_kind = forms.ChoiceField(
        label=_("Gate"),
        help_text=_(
            "On a sample, “k people said this” is literally true; the noisy threshold lets several times as many texts "
            "pass at the same price."
        ),
    )
    selection = forms.ChoiceField(
        label=_("Selection"),
        help_text=_("How it is decided what annotators are asked about, and what that costs."),
    )
    round_size = named_field(QuestionPlan, "round_size")
    overlap = named_field(QuestionPlan, "overlap")
    update_policy = forms.ChoiceField(
        required=False,
        label=_("When a model is trained"),
        help_text=_("Every training on all labels costs again; when labels double, few trainings do for many labels."),
    )
    features = forms.ChoiceField(
        initial=Features.STANDARD,
        required=False,
        label=_("Features"),
        help_text=_("Declared rules and a public encoder cost nothing; directions found in the pool are paid for."),
    )
    basic = ("name", "question", "classes", "data_kind", "columns", "image_height", "image_width", "guidelines")
    budgets = ("pool_epsilon", "pool_delta", "labels_epsilon")

    def clean_guidelines(self) -> str:
        """Refuse a picture of another site; what a copy brings is added to the new project later."""
        text: str = self.cleaned_data["guidelines"]
        try:
            refuse_pictures_of_others(text, None)
        except InvalidConfiguration as refusal:
            raise forms.ValidationError(localized(str(refusal))) from None
        return text

    def __init__(self, *args: Any, preset: Preset, **kwargs: Any) -> None:
        kwargs.setdefault("initial", dict(preset.defaults))
        super().__init__(*args, **kwargs)
        self.preset = preset
        kinds = self.fields["data_kind"]
        assert isinstance(kinds, forms.ChoiceField)
        kinds.choices = [(key, label) for key, label in DataKind.choices if key in preset.data_kinds]
        for kind in (Kind.STRATEGY, Kind.FEATURES, Kind.POLICY):
            self.offer(kind)
        if preset.oracle == Oracle.CROWD:
            self.fields["labels_epsilon"].required = True
            unused: tuple[str, ...] = (
                "data_kind",
                "columns",
                "image_height",
                "image_width",
            )
        else:
            unused = (
                "labels_epsilon",
                "gate_kind",
                "privacy_unit",
            )
        for field in unused:
            del self.fields[field]
        if Kind.GATE.key in self.fields:
            self.offer(Kind.GATE)

    def offered(self, kind: Kind) -> list[tuple[str, str]]:
        """Return what the preset may choose of a kind, with English labels."""
        arrival = self.preset.defaults.get("arrival", Arrival.POOL.value)
        return offered(kind, oracle=self.preset.oracle, arrival=arrival, data_kinds=self.preset.data_kinds)

    def offer(self, kind: Kind) -> None:
        """Let the field of a kind list what the preset may choose."""
        choice = self.fields[kind.key]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [(name, gettext_lazy(label)) for name, label in self.offered(kind)]

    def clean_classes(self) -> list[str]:
        """One class a line, blank lines ignored."""
        return [line.strip() for line in self.cleaned_data["classes"].splitlines() if line.strip()]

    def clean_update_policy(self) -> str:
        """Train per round where nothing is chosen."""
        return self.cleaned_data["update_policy"] or PerRound.name

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
        values = self.values()
        if self.errors:
            self._tell_rules_of_their_own(values)
            return self.cleaned_data
        if values["data_kind"] == DataKind.TABLE and not values.get("columns"):
            self.add_error("columns", _("A table needs its columns, with bounds or categories."))
        if values["data_kind"] == DataKind.IMAGE and not (values.get("image_height") and values.get("image_width")):
            self.add_error("image_height", _("Images need a height and a width."))
        for field, rule in broken_rules(values).items():
            self.add_error(field if field in self.fields else None, localized(rule))
        return self.cleaned_data

    def _tell_rules_of_their_own(self, values: dict[str, Any]) -> None:
        """Beside what cannot be read, name each value that is wrong whatever stands in those fields."""
        usual = {"classes": ["a", "b"], "data_kind": self.preset.data_kinds[0], "oracle": self.preset.oracle}
        usual |= self.preset.defaults
        for field, rule in broken_rules(usual | values).items():
            alone = {**usual, field: values.get(field)}
            if field in self.cleaned_data and field in values and field in broken_rules(alone):
                self.add_error(field, localized(rule))

    def values(self) -> dict[str, Any]:
        """Return the preset's values with those of the form on top."""
        later = {field for field in self.fields if getattr(self.fields[field], "later", False)}
        filled = {
            field: value
            for field, value in self.cleaned_data.items()
            if value is not None and not (value == "" and field in later)
        }
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
