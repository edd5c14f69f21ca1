"""A new project step by step: which settings each step asks for, and what was typed so far."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django import forms
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from annotation.budget.population_sheets import SharingTerms
from annotation.budget.words import LEVEL_CHOICES
from annotation.choices.account_kind import filter_of
from annotation.choices.cards import ChoiceCards
from annotation.choices.catalogue import CATALOGUE
from annotation.choices.presets import PRESETS, Preset, broken_rules
from annotation.models import Arrival, Oracle, PrivacyUnit
from annotation.projects.forms.opening import ChoosingForm, PoolProjectForm, StreamProjectForm, readable_value
from privacy.choices import Kind

OWN_LIMIT = "own"


class WizardStep(StrEnum):
    PROTECTION = "protection"
    TASK = "task"
    QUESTIONS = "questions"
    MODEL = "model"
    BUDGET = "budget"
    CHECK = "check"


TITLES = {
    WizardStep.PROTECTION: _("Who is protected from whom"),
    WizardStep.TASK: _("The task"),
    WizardStep.QUESTIONS: _("What is asked"),
    WizardStep.MODEL: _("The model"),
    WizardStep.BUDGET: _("The budget"),
    WizardStep.CHECK: _("Check and open"),
}
# What no other step asks for is a matter of the model.
FIELDS = {
    WizardStep.TASK: frozenset(ChoosingForm.basic),
    WizardStep.BUDGET: frozenset(ChoosingForm.budgets),
    WizardStep.QUESTIONS: frozenset(
        {
            "privacy_unit",
            "drop_unselected",
            "window_hours",
            "windows_ahead",
        }
    ),
}
# What a declaration brings is asked for where its kind is chosen.
STEPS_OF_KINDS: Mapping[Kind | None, WizardStep] = {
    Kind.GATE: WizardStep.QUESTIONS,
    Kind.STRATEGY: WizardStep.QUESTIONS,
    Kind.CLASSES: WizardStep.TASK,
    Kind.LABEL_TYPE: WizardStep.TASK,
    Kind.SUGGESTIONS: WizardStep.QUESTIONS,
    Kind.MACHINE: WizardStep.QUESTIONS,
    Kind.LABELLING: WizardStep.QUESTIONS,
    Kind.BUDGET: WizardStep.BUDGET,
}
# What has no default is taken for given while another step is checked.
ASSUMED = {"name": "-", "question": "-", "classes": "1\n2"}


class KindFields(forms.Form):
    """Who answers, how records come, and whose presence is hidden."""

    oracle = forms.ChoiceField(
        choices=Oracle.choices,
        widget=ChoiceCards,
        label=_("Who answers"),
    )
    arrival = forms.ChoiceField(
        choices=Arrival.choices,
        widget=ChoiceCards,
        label=_("How records come"),
    )
    privacy_unit = forms.ChoiceField(
        choices=PrivacyUnit.choices,
        widget=ChoiceCards,
        label=_("Unit of privacy"),
    )


class ProtectionForm(KindFields):
    def __init__(self, data: Any = None, *, preset: Preset, draft: Mapping[str, Any]) -> None:
        unit = draft.get("privacy_unit", preset.defaults["privacy_unit"])
        super().__init__(data, initial={"oracle": preset.oracle, "arrival": arrival_of(preset), "privacy_unit": unit})
        self.preset = preset

    def clean(self) -> dict[str, Any]:
        if self.errors:
            return self.cleaned_data
        chosen = self.cleaned_data
        nearest = preset_of(chosen["oracle"], chosen["arrival"], self.preset) or preset_of(
            chosen["oracle"], None, self.preset
        )
        assert nearest is not None
        # Gates for contributors have a cap by default, so that this one choice is not refused for lack of another.
        settings = {"labels_epsilon": None, **nearest.defaults, **chosen, "data_kind": nearest.data_kinds[0]}
        for field, rule in broken_rules({**settings, "classes": ["1", "2"]}).items():
            if field in self.fields:
                self.add_error(field, gettext(rule))
        return self.cleaned_data

    def chosen_preset(self) -> Preset:
        """Return the preset that has what was chosen, the present one if it does."""
        found = preset_of(self.cleaned_data["oracle"], self.cleaned_data["arrival"], self.preset)
        assert found is not None
        return found


class BudgetLevelForm(forms.Form):
    """A named limit, and how many are protected, to judge delta by."""

    level = forms.ChoiceField(
        choices=[*LEVEL_CHOICES, (OWN_LIMIT, _("the numbers below"))],
        widget=ChoiceCards,
        label=_("Limit of the pool"),
        help_text=_("A named limit replaces the epsilon below."),
    )
    people = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=10**9,
        label=_("About how many are protected"),
        help_text=_("Records or people, a public guess; delta is compared with it and nothing is kept of it."),
    )

    def __init__(self, data: Any = None, *, draft: Mapping[str, Any]) -> None:
        super().__init__(data, initial={"level": draft.get("level", OWN_LIMIT), "people": draft.get("people")})


def sharing_terms(form: ChoosingForm) -> SharingTerms:
    """Return what decides which limit a draft's project may share; while it is wrong elsewhere, as far as known."""
    if not form.is_valid():
        unit = form.data.get("privacy_unit") or form.initial["privacy_unit"]
        return SharingTerms(unit=str(unit), filter="", epsilon_limit=0.0)
    values = form.values()
    return SharingTerms(unit=values["privacy_unit"], filter=filter_of(values), epsilon_limit=values["pool_epsilon"])


@dataclass(frozen=True, slots=True)
class ShownSetting:
    label: str
    value: str
    default: str
    effect: str
    changed: bool


def arrival_of(preset: Preset) -> str:
    return str(preset.defaults.get("arrival", Arrival.POOL))


def preset_of(oracle: str, arrival: str | None, current: Preset) -> Preset | None:
    """Return the preset with this oracle and arrival (None: any), the current one first."""
    found = [
        preset
        for preset in (current, *PRESETS.values())
        if preset.oracle == oracle and arrival in (None, arrival_of(preset))
    ]
    return found[0] if found else None


def step_of(field: str) -> WizardStep:
    written = next((step for step, names in FIELDS.items() if field in names), None)
    return written or STEPS_OF_KINDS.get(CATALOGUE.kind_of(field), WizardStep.MODEL)


def draft_form(preset: Preset, draft: Mapping[str, Any], *, assumed: bool = False) -> ChoosingForm:
    """Return the whole form of a draft, bound: what nobody typed yet stands at its default."""
    form_class: type[ChoosingForm] = StreamProjectForm if arrival_of(preset) == Arrival.STREAM else PoolProjectForm
    known = form_class.known_names()
    typed = {name: value for name, value in draft.items() if name in known}
    if assumed:
        typed |= {name: value for name, value in ASSUMED.items() if not typed.get(name)}
    probe = form_class(preset=preset, initial=typed)
    data = {name: as_sent(_standing(probe, name, field)) for name, field in probe.fields.items()}
    return form_class(data, preset=preset)


def step_fields(form: ChoosingForm, step: WizardStep) -> list[forms.BoundField]:
    names = [name for name in form.fields if step_of(name) == step]
    if step == WizardStep.QUESTIONS:
        names = [name for name in names if name != "privacy_unit"]
    return [form[name] for name in sorted(names, key=lambda name: name not in form.choices)]


def typed_in(form: ChoosingForm, step: WizardStep, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a step's page sent, as it was typed; a box that was on the page and not sent is unticked."""
    found: dict[str, Any] = {}
    for bound in step_fields(form, step):
        if isinstance(bound.field, forms.BooleanField):
            found[bound.name] = bound.name in data
        elif bound.name in data:
            found[bound.name] = data[bound.name]
    return found


def errors_of(form: ChoosingForm, step: WizardStep) -> dict[str, list[str]]:
    names = {bound.name for bound in step_fields(form, step)}
    return {name: [str(error) for error in errors] for name, errors in form.errors.items() if name in names}


def shown_settings(form: ChoosingForm, step: WizardStep) -> Iterator[ShownSetting]:
    for bound in step_fields(form, step):
        value = _value(form, bound)
        default = str(getattr(bound.field, "default_words", ""))
        yield ShownSetting(
            str(bound.label), value, default, str(bound.help_text), changed=bool(default) and value != default
        )


def _standing(probe: ChoosingForm, name: str, field: forms.Field) -> Any:
    """Return what a page would send for a field that nobody touched: of a list its first line."""
    value = probe.get_initial_for_field(field, name)
    return probe.chosen[name] if value is None and name in probe.chosen else value


def _value(form: ChoosingForm, bound: forms.BoundField) -> str:
    value = form.cleaned_data.get(bound.name) if form.is_bound else None
    if bound.name == "classes":
        classes = value or []
        count = ngettext("%(n)d class", "%(n)d classes", len(classes)) % {"n": len(classes)}
        return f"{count}: {', '.join(classes)}"
    if bound.name == "columns":
        return ", ".join(column["name"] for column in value or []) or gettext("none")
    return readable_value(bound.field, value)


def as_sent(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "false"
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)
