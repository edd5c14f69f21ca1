"""The gates of a crowd project by their names, and what its settings say of the one it chose."""

from collections.abc import Mapping
from typing import Any, Final

from annotation.choices.gate_base import GateChoice
from annotation.choices.noisy_gate import NoisyGate
from annotation.choices.sampled_gate import SampledGate
from privacy.accounting.cost import Unit
from privacy.accounting.event import Event
from privacy.gate import KAnonymityGate, ThresholdGate

# What projects may choose, in the order in which forms list it; a new gate joins by one line.
CHOICES: Final[tuple[type[GateChoice], ...]] = (
    SampledGate,
    NoisyGate,
)
GATES: Final[Mapping[str, type[GateChoice]]] = {choice.name: choice for choice in CHOICES}
OF_EVERY_GATE: Final = frozenset(each.name for each in GateChoice.parameters())
# What describes a gate of each kind beside what all have; a project keeps the settings of its own kind and no others.
GATE_FIELDS: Final = {
    choice.name: tuple(each.name for each in choice.parameters() if each.name not in OF_EVERY_GATE)
    for choice in CHOICES
}
SHARED_GATE_FIELDS: Final = ("gate_epsilon", "texts_per_contributor", "gate_window")
ALL_GATE_FIELDS: Final = (*SHARED_GATE_FIELDS, *(name for own in GATE_FIELDS.values() for name in own))


def gate_from(settings: Mapping[str, Any]) -> KAnonymityGate | ThresholdGate:
    """Return the gate that the settings of a project describe; `ValueError` where they describe none."""
    return GATES[settings["gate_kind"]].of(settings).gate(_unit_of(settings))


def first_event(settings: Mapping[str, Any]) -> Event:
    """Return what the first upload through the gate of a project is charged; `ValueError` where there is no gate."""
    return GATES[settings["gate_kind"]].of(settings).event(unit=_unit_of(settings))


def _unit_of(settings: Mapping[str, Any]) -> Unit:
    return "contributor" if settings["privacy_unit"] == "contributor" else "record"
