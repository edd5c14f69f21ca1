"""The gates of a crowd project by their names, and what its settings say of the one it chose."""

from collections.abc import Mapping
from typing import Any, Final

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.gate_base import GateChoice, unit_of
from annotation.choices.noisy_gate import NoisyGate
from annotation.choices.sampled_gate import SampledGate
from privacy.accounting.event import Event
from privacy.accounting.gate_events import GateEvent
from privacy.choices import Kind, Parameter
from privacy.gate.counting import CountingGate

# What projects may choose, in the order in which forms list it; a new gate joins by one line.
CHOICES: Final[tuple[type[GateChoice], ...]] = (
    SampledGate,
    NoisyGate,
)
# What all have, and a project keeps whichever of them it chooses.
SHARED_GATE_FIELDS: Final = ("gate_epsilon", "texts_per_contributor", "gate_window")


def gate_choices() -> dict[str, type[GateChoice]]:
    """Return all gates there are to choose from, by their names."""
    return {choice.name: choice for choice in CATALOGUE.of_kind(Kind.GATE) if issubclass(choice, GateChoice)}


def gate_fields(kind: str) -> tuple[str, ...]:
    """Name what describes a gate of a kind beside what all have; a project keeps the settings of its own kind alone."""
    return tuple(each.name for each in gate_choices()[kind].own_parameters())


def own_gate_parameters() -> dict[str, Parameter]:
    """Return what describes the gates of all kinds beside what all have, by their names."""
    return {each.name: each for choice in gate_choices().values() for each in choice.own_parameters()}


def all_gate_fields() -> tuple[str, ...]:
    """Name the settings of all gates."""
    return (*SHARED_GATE_FIELDS, *own_gate_parameters())


def other_gate_fields(kind: str) -> set[str]:
    """Name the settings that a project with a gate of a kind has no value of."""
    return own_gate_parameters().keys() - {*gate_fields(kind)}


def gate_choice(settings: Mapping[str, Any]) -> GateChoice:
    """Return the gate that a project chose; `ValueError` where its settings describe none."""
    found = gate_choices().get(settings["gate_kind"])
    if found is None:
        raise ValueError(f"gate_kind must be one of {', '.join(gate_choices())}, got {settings['gate_kind']!r}")
    return found.of(settings)


def gate_from(settings: Mapping[str, Any]) -> CountingGate:
    """Return the mechanism that the settings of a project describe; `ValueError` where they describe none."""
    return gate_choice(settings).gate(unit_of(settings))


def run_event(settings: Mapping[str, Any]) -> GateEvent:
    """Return what one run of a project's gate is charged, counted by itself; `ValueError` where there is no gate."""
    return gate_choice(settings).run_event(unit_of(settings))


def first_event(settings: Mapping[str, Any]) -> Event:
    """Return what the first upload through the gate of a project is charged; `ValueError` where there is no gate."""
    return gate_choice(settings).event(unit=unit_of(settings))
