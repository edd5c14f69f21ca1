"""The form of a new project over a pool: what the choices made so far do not use is not shown."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.label_types.choose import ChooseOne
from annotation.choices.preset import Preset
from annotation.choices.presets import epsilon_of_kind
from annotation.choices.randomizers import answers_unit
from annotation.choices.selection_rules import field_defaults
from annotation.models import Arrival, DataKind
from annotation.projects.forms.choosing import ChoosingForm
from privacy.choices import Kind

ROUNDS = ("round_size", "labels_per_release", "update_policy")
DATA_FIELDS: Mapping[str, tuple[str, ...]] = {
    DataKind.TABLE: ("columns",),
    DataKind.IMAGE: ("image_height", "image_width"),
}


class PoolProjectForm(ChoosingForm):
    """What a pool needs beside every project's task and budget."""

    choices: tuple[str, ...] = ("data_kind", "question_kind", "selection", "estimator", "features", "gate_kind")

    question_kind = forms.ChoiceField(
        required=False,
        initial=ChooseOne.name,
        label=_("What is asked about a record"),
        help_text=_("A class, or a step of a scale; the classes are its steps then, from lowest to highest."),
    )
    estimator = forms.ChoiceField(
        label=_("Model"),
        help_text=_(
            "All of them add noise; what a training costs is the same, how good its model is differs. Logistic "
            "regression and SVMs give each of three classes or more a share of epsilon, and learn little of many."
        ),
    )

    def __init__(self, *args: Any, preset: Preset, **kwargs: Any) -> None:
        defaults = field_defaults()
        kwargs["initial"] = {**defaults, **preset.defaults, **(kwargs.get("initial") or {})}
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
        self.tell_defaults()

    @classmethod
    def ticked(cls, data: Mapping[str, Any]) -> dict[str, bool]:
        """Return the boxes of every choice."""
        boxes = [name for name, field in cls.known_fields().items() if isinstance(field, forms.BooleanField)]
        return {name: name in data for name in boxes}

    def clean_question_kind(self) -> str:
        """Ask for a class where nothing is chosen."""
        return self.cleaned_data["question_kind"] or ChooseOne.name

    def values(self) -> dict[str, Any]:
        """Return the preset's values with those of the form on top; what the choices do not use is at its default."""
        defaults = field_defaults()
        values = {name: value for name, value in super().values().items() if value != "" or name not in defaults}
        hidden = [name for name in defaults if name not in self.fields]
        return values | {name: defaults[name] for name in hidden}

    def _asks_more(self, kind: Kind) -> bool:
        """Say whether some choice of a kind has parameters in a pool, so that the choice decides what is asked."""
        found = (CATALOGUE.find(kind, name) for name, _label in self.offered(kind))
        return any(choice is not None and choice.parameters_in(Arrival.POOL) for choice in found)

    def _price_gate(self) -> None:
        """Keep the price of the preset's gate where another kind is chosen and nobody typed an epsilon of their own."""
        whole = self.preset.defaults.get("gate_epsilon")
        kind = self.chosen.get("gate_kind", self.preset.defaults.get("gate_kind"))
        if kind != self.preset.defaults.get("gate_kind") and str(self.initial.get("gate_epsilon")) == str(whole):
            self.initial["gate_epsilon"] = epsilon_of_kind(self.preset, {**self.preset.defaults, "gate_kind": kind})

    def _unused(self) -> list[str]:
        """Name the fields that the choices made so far do not use."""
        kind = self.chosen.get("data_kind", self.preset.data_kinds[0])
        selection = CATALOGUE.find(Kind.STRATEGY, self.chosen["selection"])
        used = {*DATA_FIELDS.get(kind, ())} | (set(ROUNDS) if getattr(selection, "in_rounds", True) else set())
        return [name for name in _BY_CHOICE if name not in used]


_BY_CHOICE = {
    *ROUNDS,
    *(name for names in DATA_FIELDS.values() for name in names),
}
