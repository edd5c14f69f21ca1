"""Forms of new projects: every field, and those that the choices made so far use."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.formats import number_format
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_lazy as _

from annotation.choices.catalogue import CATALOGUE, offered, parameter_names
from annotation.choices.form_fields import DeltaField, EpsilonField, field_of, kind_field, named_field
from annotation.choices.label_types.choose import ChooseOne
from annotation.choices.label_types.learning import is_learned, not_learned
from annotation.choices.planned_settings import planned_settings
from annotation.choices.plans import QuestionPlan
from annotation.choices.policies import PerRound
from annotation.choices.presets import Preset, broken_rules, epsilon_of_kind, fitting_estimator
from annotation.choices.randomizers import answers_unit
from annotation.choices.rules import field_defaults
from annotation.choices.selections import AsksInBlocks, asks_about_all
from annotation.errors import InvalidConfiguration
from annotation.gates.comparison import EXAMPLE_TEXT
from annotation.models import Arrival, DataKind, Features, Oracle, PrivacyUnit
from annotation.questions.guidelines import refuse_pictures_of_others
from annotation.wording import localized
from dpal.reading.labels import canonical_name
from dpal.reading.quoting import split_name, split_quoted
from privacy.accounting.cost import LEAST_EPSILON_LIMIT, MOST_EPSILON_LIMIT
from privacy.choices import Kind, Parameter
from privacy.gate.normalizers import Normalizer, normalize_text


class ProjectForm(forms.Form):
    """Everything a new project needs; opened from a preset, whose values are the defaults."""

    name = forms.CharField(max_length=120, label=_("Name"))
    question = forms.CharField(
        max_length=200,
        label=_("Question"),
        help_text=_("Such as: What does this person want?"),
    )
    classes = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}), label=_("Classes"), help_text=_("One per line, 2 to 1,000.")
    )
    guidelines = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}),
        required=False,
        label=_("Guidelines"),
        help_text=_("Markdown: # heading, - list, **bold**, `code`, | tables |."),
    )
    data_kind = forms.ChoiceField(
        choices=DataKind.choices,
        label=_("What a record is"),
    )
    columns = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}),
        required=False,
        label=_("Columns"),
        help_text=_(
            "One per line, public: “amount: 0 to 5000” or “country: NO, SE, DK”; add “or missing” or “or other”."
        ),
    )
    image_height = forms.IntegerField(
        min_value=1,
        max_value=4096,
        required=False,
        label=_("Image height in pixels"),
    )
    image_width = forms.IntegerField(min_value=1, max_value=4096, required=False, label=_("Image width in pixels"))

    pool_epsilon = EpsilonField(label=_("Epsilon limit"))
    pool_delta = DeltaField(label=_("Delta limit"), help_text=_("Well below 1 / number of people."))
    labels_epsilon = EpsilonField(
        required=False,
        label=_("Epsilon limit of the answers"),
        help_text=_("Ten answers of one person lose ten times the epsilon of one."),
    )

    privacy_unit = forms.ChoiceField(
        choices=PrivacyUnit.choices,
        label=_("Unit of privacy"),
    )
    gate_kind = forms.ChoiceField(
        label=_("Gate"),
        help_text=_("The noisy threshold passes several times as many texts."),
    )
    selection = forms.ChoiceField(label=_("Selection"))
    round_size = named_field(QuestionPlan, "round_size")
    overlap = named_field(QuestionPlan, "overlap")
    update_policy = forms.ChoiceField(
        required=False,
        label=_("When a model is trained"),
        help_text=_("Every training costs again."),
    )
    features = forms.ChoiceField(
        initial=Features.STANDARD,
        required=False,
        label=_("Features"),
        help_text=_("Directions found in the pool are paid for."),
    )
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
            unused: tuple[str, ...] = ("data_kind", "columns", "image_height", "image_width")
        else:
            unused = ("labels_epsilon", "gate_kind", "privacy_unit")
        for field in unused:
            del self.fields[field]
        if Kind.GATE.key in self.fields:
            self.offer(Kind.GATE)

    def offered(self, kind: Kind) -> list[tuple[str, str]]:
        arrival = self.preset.defaults.get("arrival", Arrival.POOL.value)
        found = offered(kind, oracle=self.preset.oracle, arrival=arrival, data_kinds=self.preset.data_kinds)
        return [each for each in found if kind != Kind.LABEL_TYPE or is_learned(each[0])]

    def offer(self, kind: Kind) -> None:
        choice = self.fields[kind.key]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [(name, gettext_lazy(label)) for name, label in self.offered(kind)]

    def clean_classes(self) -> list[str]:
        return [name for name in map(canonical_name, self.cleaned_data["classes"].splitlines()) if name]

    def clean_update_policy(self) -> str:
        return self.cleaned_data["update_policy"] or PerRound.name

    def clean_features(self) -> str:
        return self.cleaned_data["features"] or Features.STANDARD.value

    def clean_columns(self) -> list[dict[str, Any]]:
        lines = [line for line in self.cleaned_data["columns"].splitlines() if line.strip()]
        columns = [_declared_column(number, line) for number, line in enumerate(lines, start=1)]
        names = [column["name"] for column in columns]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise forms.ValidationError(_("The column “%(name)s” is declared twice."), params={"name": twice})
        return columns

    def clean(self) -> dict[str, Any]:
        values = self.values()
        if self.errors:
            self._tell_rules_of_their_own(values)
            return self.cleaned_data
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
        later = {field for field in self.fields if getattr(self.fields[field], "later", False)}
        filled = {
            field: value
            for field, value in self.cleaned_data.items()
            if value is not None and not (value == "" and field in later)
        }
        kind = {"data_kind": self.preset.data_kinds[0], "oracle": self.preset.oracle}
        return {**kind, **self.preset.defaults, **filled}

    def project_values(self) -> dict[str, Any]:
        values = self.values()
        return {field: value for field, value in values.items() if field != "oracle"}

    def group(self, names: tuple[str, ...]) -> list[forms.BoundField]:
        return [self[name] for name in names if name in self.fields]


def _declared_column(number: int, line: str) -> dict[str, Any]:
    """Read `name: low to high` or `name: a, b, c`; what holds a colon or a comma stands in quotation marks.

    `or missing` at its end allows empty cells, `or other` further categories.
    """
    name, rule = split_name(line)
    allowed: dict[str, bool] = {}
    while found := ALLOWED.search(rule):
        rule, allowed[found[1]] = rule[: found.start()], True
    if not (name and rule):
        raise forms.ValidationError(
            _("Line %(line)d: write “name: low to high” or “name: a, b, c”."), params={"line": number}
        )
    low, middle, high = (part.strip() for part in rule.partition(" to "))
    if not middle or rule.startswith('"'):
        categories = split_quoted(rule)
        if len(set(categories)) != len(categories):
            raise forms.ValidationError(_("Line %(line)d: a name is there twice."), params={"line": number})
        return {"name": name, "categories": categories, **allowed}
    try:
        bounds = float(low), float(high)
    except ValueError as error:
        raise forms.ValidationError(
            _("Line %(line)d: write “name: low to high” or “name: a, b, c”."), params={"line": number}
        ) from error
    if not bounds[0] < bounds[1]:
        raise forms.ValidationError(
            _("Line %(line)d: the lower bound must be below the upper."), params={"line": number}
        )
    if allowed.keys() - {"missing"}:
        raise forms.ValidationError(
            _("Line %(line)d: only categories have others beside them."), params={"line": number}
        )
    return {"name": name, "low": bounds[0], "high": bounds[1], **allowed}


# What may stand in a cell besides what is declared, at the end of a line.
ALLOWED = re.compile(r",?\s+or (missing|other)$")
# Of these a project may choose one or none.
OPTIONAL_KINDS = (Kind.RANDOMIZER, Kind.SUGGESTIONS, Kind.MACHINE)
# What managers say of these, on pages of their own, changes no guarantee; a new project may say it at once.
LATER = (Kind.LABELLING, Kind.BUDGET)
# What a person must type has no default.
TYPED = ("name", "question", "classes", "guidelines", "columns", "image_height", "image_width")
# One text under every rule, so that nobody has to imagine what annotators will read.
NORMALIZER_CHOICES = [
    (
        rule.value,
        format_lazy("{}: {} (“{}”)", rule.value, gettext_lazy(rule.summary), normalize_text(EXAMPLE_TEXT, rule)),
    )
    for rule in Normalizer
]
# Those of one kind stand together on a page, in this order; what no choice declares stands before them.
ORDER = {kind: place for place, kind in enumerate(Kind, start=1)}


def _place(name: str) -> int:
    kind = CATALOGUE.kind_of(name)
    return 0 if kind is None else ORDER[kind]


def _later_field(declared: Parameter) -> forms.Field:
    """Return the field of a setting that pages of its own ask for: whoever leaves it out has its default."""
    field = field_of(declared)
    field.required, field.later = False, True  # type: ignore[attr-defined]
    return field


def readable_value(field: forms.Field, value: Any) -> str:
    if isinstance(field, forms.BooleanField):
        return gettext("yes") if value else gettext("no")
    if value in (None, "", [], ()):
        return gettext("none")
    if isinstance(field, forms.ChoiceField):
        return str(dict(field.widget.choices).get(value, value))
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or gettext("none")
    return str(number_format(f"{value:g}")) if isinstance(value, float) else str(value)


class ChoosingForm(ProjectForm):
    """A form whose choices decide which settings there are; the server leaves the others out."""

    # Names of the fields that decide.
    choices: tuple[str, ...] = ()
    chosen: dict[str, str]

    def choose(self) -> None:
        self.chosen = {name: self._chosen(name) for name in self.choices if name in self.fields}

    @classmethod
    def known_fields(cls) -> dict[str, forms.Field]:
        fields = {name: field_of(each) for name, each in CATALOGUE.parameters().items()}
        kinds = {kind.key: kind_field(kind, []) for kind in OPTIONAL_KINDS if CATALOGUE.of_kind(kind)}
        return {**fields, **kinds, **cls.base_fields}

    @classmethod
    def known_names(cls) -> list[str]:
        kinds = [kind.key for kind in OPTIONAL_KINDS if CATALOGUE.of_kind(kind)]
        return [*dict.fromkeys((*CATALOGUE.parameters(), *kinds, *cls.base_fields))]

    @classmethod
    def later_names(cls) -> list[str]:
        return [name for kind in LATER for name in parameter_names(kind) if name not in cls.base_fields]

    def offer_optional(self) -> None:
        for kind in OPTIONAL_KINDS:
            if offered := self.offered(kind):
                self.fields[kind.key] = kind_field(kind, offered)
                self.choices = (*self.choices, kind.key)

    def ask_declared(self) -> None:
        arrival = str(self.preset.defaults.get("arrival", Arrival.POOL))
        settings = {**self.preset.defaults, **self.chosen, "oracle": self.preset.oracle}
        data_kind = self.chosen.get("data_kind", self.preset.data_kinds[0])
        for choice in CATALOGUE.chosen(settings):
            if choice.kind.key and choice.kind.key not in self.chosen:
                continue
            if choice.sound.broken({**settings, "arrival": arrival, "data_kind": data_kind}):
                continue
            for each in choice.parameters_in(arrival, data_kind):
                field = _later_field(each) if choice.kind in LATER else field_of(each)
                field.required &= not self.is_bound or each.name in self.data
                self.fields.setdefault(each.name, field)
        if "normalizer" in self.fields:
            self.fields["normalizer"].choices = NORMALIZER_CHOICES  # type: ignore[attr-defined]
        self.order_fields(sorted(self.fields, key=_place))

    def plan(self) -> None:
        settings = {**self.initial, **self.chosen, "oracle": self.preset.oracle}
        settings.setdefault("data_kind", self.preset.data_kinds[0])
        settings["classes"] = str(settings.get("classes") or "").split("\n")
        kinds = {name: each.type for name, each in CATALOGUE.parameters().items() if each.type in (int, float)}
        for name, read in (kinds | dict.fromkeys(("pool_epsilon", "pool_delta"), float)).items():
            try:
                settings[name] = read(settings[name]) if settings.get(name) not in (None, "") else None
            except (TypeError, ValueError):
                # What cannot be read is told at its field.
                return
            if settings[name] is None:
                del settings[name]
        if not {"pool_epsilon", "pool_delta"} <= settings.keys():
            return
        if not LEAST_EPSILON_LIMIT <= settings["pool_epsilon"] <= MOST_EPSILON_LIMIT:
            return
        for name, value in planned_settings(settings).items():
            if str(self.initial.get(name)) in ("None", str(self.preset.defaults.get(name))):
                self.initial[name] = value

    def need_data_fields(self) -> None:
        for name in DATA_FIELDS.get(self.chosen.get("data_kind", ""), ()):
            self.fields[name].required = True

    def tell_defaults(self) -> None:
        defaults = {**field_defaults(), **self.preset.defaults}
        for name, field in self.fields.items():
            default = defaults.get(name, field.initial)
            if default is None and isinstance(field, forms.ChoiceField):
                default = field.widget.choices[0][0]
            # The page of every field reads it; Django's fields have no such attribute of their own.
            field.default_words = "" if name in TYPED else readable_value(field, default)  # type: ignore[attr-defined]

    def _chosen(self, name: str) -> str:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        offered = [str(key) for key, _label in field.widget.choices]
        default = self.initial.get(name) or self.get_initial_for_field(field, name)
        wanted = self.data.get(name, default) if self.is_bound else default
        return str(wanted if wanted in offered else offered[0])


ROUNDS = ("round_size", "labels_per_release", "update_policy")
DATA_FIELDS: Mapping[str, tuple[str, ...]] = {
    DataKind.TABLE: ("columns",),
    DataKind.IMAGE: ("image_height", "image_width"),
}


class PoolProjectForm(ChoosingForm):
    choices: tuple[str, ...] = ("data_kind", "question_kind", "selection", "estimator", "features", "gate_kind")

    question_kind = forms.ChoiceField(
        required=False,
        initial=ChooseOne.name,
        label=_("What is asked about a record"),
    )
    estimator = forms.ChoiceField(
        label=_("Model"),
        help_text=_("Logistic regression and SVMs learn little with many classes."),
    )

    def __init__(self, *args: Any, preset: Preset, **kwargs: Any) -> None:
        defaults = field_defaults()
        kwargs["initial"] = {**defaults, **preset.defaults, **(kwargs.get("initial") or {})}
        if kwargs["initial"]["estimator"] == preset.defaults["estimator"]:
            kwargs["initial"]["estimator"] = fitting_estimator(preset, kwargs["initial"])
        super().__init__(*args, preset=preset, **kwargs)
        self.offer(Kind.ESTIMATOR)
        self.offer(Kind.LABEL_TYPE)
        self.offer_optional()
        if self._asks_more(Kind.POLICY):
            self.choices = (*self.choices, Kind.POLICY.key)
        if not self.initial.get("training_delta"):
            self.initial.pop("training_delta", None)
        self.choose()
        if answers_unit(self.chosen) is None:
            self.fields.pop("labels_epsilon", None)
        self._price_gate()
        self.plan()
        self.ask_declared()
        for name in self._unused():
            self.fields.pop(name, None)
        self.need_data_fields()
        self.tell_defaults()

    def clean_question_kind(self) -> str:
        return self.cleaned_data["question_kind"] or ChooseOne.name

    def values(self) -> dict[str, Any]:
        defaults = field_defaults()
        values = {name: value for name, value in super().values().items() if value != "" or name not in defaults}
        hidden = [name for name in defaults if name not in self.fields]
        return values | {name: defaults[name] for name in hidden}

    def _asks_more(self, kind: Kind) -> bool:
        found = (CATALOGUE.find(kind, name) for name, _label in self.offered(kind))
        return any(choice is not None and choice.parameters_in(Arrival.POOL) for choice in found)

    def _price_gate(self) -> None:
        """Keep the price of the preset's gate where another kind is chosen and nobody typed an epsilon of their own."""
        whole = self.preset.defaults.get("gate_epsilon")
        kind = self.chosen.get("gate_kind", self.preset.defaults.get("gate_kind"))
        if kind != self.preset.defaults.get("gate_kind") and str(self.initial.get("gate_epsilon")) == str(whole):
            self.initial["gate_epsilon"] = epsilon_of_kind(self.preset, {**self.preset.defaults, "gate_kind": kind})

    def _unused(self) -> list[str]:
        kind = self.chosen.get("data_kind", self.preset.data_kinds[0])
        selection = CATALOGUE.find(Kind.STRATEGY, self.chosen["selection"])
        used = {*DATA_FIELDS.get(kind, ())} | (set() if isinstance(selection, AsksInBlocks) else set(ROUNDS))
        return [name for name in _BY_CHOICE if name not in used]


_BY_CHOICE = {*ROUNDS, *(name for names in DATA_FIELDS.values() for name in names)}


WINDOWS = ("window_length", "window_denominator")
# What a pool alone has: rounds, trainings after so many labels.
OF_POOLS = ("round_size", "overlap", "labels_per_release", "image_height", "image_width")


class StreamProjectForm(ChoosingForm):
    choices = ("data_kind", "features", "selection", "estimator", "update_policy")

    estimator = forms.ChoiceField(
        required=False,
        label=_("Model"),
        help_text=_("Sums learn from all answers so far; steps need no delta."),
    )

    def __init__(self, *args: Any, preset: Preset, **kwargs: Any) -> None:
        kwargs["initial"] = {**preset.defaults, **(kwargs.get("initial") or {})}
        super().__init__(*args, preset=preset, **kwargs)
        models = self.fields["estimator"]
        assert isinstance(models, forms.ChoiceField)
        models.choices = [(name, _(label)) for name, label in self.offered(Kind.ESTIMATOR) if self._may_learn(name)]
        self.offer_optional()
        self.choose()
        self.plan()
        self.ask_declared()
        for name in (*OF_POOLS, *self._unused()):
            self.fields.pop(name, None)
        self.need_data_fields()
        self.tell_defaults()

    def _may_learn(self, name: str) -> bool:
        return not not_learned({**self.preset.defaults, Kind.ESTIMATOR.key: name})

    def _unused(self) -> list[str]:
        # Where not everything is asked about, what nobody is asked about may go.
        unused = ["drop_unselected"] if asks_about_all(self.chosen["selection"]) else []
        return unused if self.chosen["data_kind"] == DataKind.TABLE else ["columns", *unused]

    def clean_estimator(self) -> str:
        return self.cleaned_data["estimator"] or str(self.preset.defaults["estimator"])

    def clean_update_policy(self) -> str:
        return self.cleaned_data["update_policy"] or str(self.preset.defaults["update_policy"])

    def values(self) -> dict[str, Any]:
        chosen = {field: self.cleaned_data.get(field) for field in WINDOWS}
        if "training_delta" not in self.fields:
            # Noise of steps has none.
            chosen["training_delta"] = 0.0
        return {**super().values(), **chosen}
