"""Base class of the gates of a crowd project, and the gate that settings choose."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, Self, final, runtime_checkable

from annotation.choices.catalogue import CATALOGUE
from privacy.accounting.cost import Unit
from privacy.accounting.event import Event
from privacy.accounting.gate_events import MOST_UPLOADS_TOGETHER, GateEvent, next_window_run
from privacy.choices import Choice, Kind, Parameter, Sound, parameter
from privacy.gate.counting import CountingGate
from privacy.gate.normalizers import Normalizer
from privacy.wording import Message, as_message
from privacy.wording import gettext_noop as _

MOST_TEXTS: Final = 100
ONE_UPLOAD_ALONE: Final = _("This gate cannot count uploads together; leave it empty.")
# Settings that every gate has; a project keeps them whichever gate it chooses.
SHARED_GATE_FIELDS: Final = ("gate_epsilon", "texts_per_contributor", "gate_window")


def who_counts(unit: Unit) -> Message:
    """Return what the counts of a gate are of: people, or records."""
    return as_message("people") if unit == "contributor" else as_message("records")


@dataclass(frozen=True)
class GateChoice(Choice):
    """A gate: its mechanism and price (`charged_as`), and what managers and annotators are told about it."""

    kind: ClassVar[Kind] = Kind.GATE
    charged_as: ClassVar[type[GateEvent]] = GateEvent  # type: ignore[type-abstract]
    sound: ClassVar[Sound] = Sound(
        oracles=("crowd",),
        arrivals=("pool",),
        why_not={
            "trusted": _("Experts see the records, so they need no gate."),
            "stream": _("A gate counts whole uploads, so a crowd needs a pool."),
        },
    )

    gate_epsilon: float = parameter(
        None,
        above=0,
        label=_("Gate: epsilon"),
        help=_("k-anonymity: the cost of one text. Threshold: the cost of the gate."),
        charged=True,
    )
    texts_per_contributor: int | None = parameter(
        None,
        at_least=1,
        at_most=MOST_TEXTS,
        label=_("Gate: texts per contributor"),
        help=_("More texts of one person cost more."),
        charged=True,
    )
    normalizer: str = parameter(
        None,
        options={rule.value: rule.summary for rule in Normalizer},
        label=_("What annotators see"),
        help=_("Higher levels let more texts pass and show less of each."),
    )

    gate_window: int | None = parameter(
        None,
        at_least=1,
        at_most=MOST_UPLOADS_TOGETHER,
        label=_("Gate: uploads counted together"),
        help=_("The newest uploads are counted together and paid with the first; no record may be in two."),
        charged=True,
    )

    @abstractmethod
    def gate(self, unit: Unit) -> CountingGate:
        """Return the mechanism; `ValueError` where there is none with these numbers."""

    @classmethod
    def at_price(cls, epsilon: float, delta: float, *, unit: Unit, texts_per_contributor: int | None) -> list[Self]:
        """Return the gates of this kind at a price that no other of it beats; none where it is offered at no price."""
        return []

    @abstractmethod
    def needed(self, unit: Unit) -> int:
        """Return about how often a text must be said to pass."""

    @abstractmethod
    def passes(self) -> Message:
        """Tell managers when a text passes."""

    @abstractmethod
    def told(self, unit: Unit) -> Message:
        """Tell annotators what is true of a text that passed."""

    @abstractmethod
    def why(self, unit: Unit) -> Message:
        """Tell annotators why they see a text; the sentence goes on from it, so it ends without a full stop."""

    @abstractmethod
    def unpayable(self, delta: float, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse a first run whose delta is more than the pool's, in words that say which setting helps."""

    @final
    def run_event(self, unit: Unit) -> GateEvent:
        gate = self.gate(unit)
        event = gate.event(self.gate_epsilon)
        if not isinstance(event, self.charged_as) or not event.unit == gate.unit == unit:
            raise TypeError(f"gate {self.name} does not pay for hiding each {unit}")
        return event

    def event(self, *, unit: Unit, **circumstances: Any) -> Event:
        once = self.run_event(unit)
        return once if self.gate_window is None else next_window_run(None, once, window=self.gate_window)

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        if self.gate_window is None or (settings["privacy_unit"] == "record" and self.charged_as.proved_in_windows):
            return {}
        return {"gate_window": ONE_UPLOAD_ALONE}

    @final
    def cap(self, unit: Unit) -> int | None:
        """Return how many texts of one person count, None where records are protected one by one."""
        return self.texts_per_contributor if unit == "contributor" else None


@runtime_checkable
class ChargedByText(Protocol):
    charged_by_text: ClassVar[bool]


@runtime_checkable
class NamedByNumbers(Protocol):
    """A gate of which several are offered at one price, told apart by their numbers."""

    def numbers(self) -> Message: ...


def unit_of(settings: Mapping[str, Any]) -> Unit:
    return "contributor" if settings["privacy_unit"] == "contributor" else "record"


def gate_choices() -> dict[str, type[GateChoice]]:
    return {choice.name: choice for choice in CATALOGUE.of_kind(Kind.GATE) if issubclass(choice, GateChoice)}


def own_parameters(choice: type[GateChoice]) -> list[Parameter]:
    shared = {each.name for each in GateChoice.parameters()}
    return [each for each in choice.parameters() if each.name not in shared]


def gate_fields(kind: str) -> tuple[str, ...]:
    return tuple(each.name for each in own_parameters(gate_choices()[kind]))


def own_gate_parameters() -> dict[str, Parameter]:
    return {each.name: each for choice in gate_choices().values() for each in own_parameters(choice)}


def all_gate_fields() -> tuple[str, ...]:
    return (*SHARED_GATE_FIELDS, *own_gate_parameters())


def other_gate_fields(kind: str) -> set[str]:
    return own_gate_parameters().keys() - {*gate_fields(kind)}


def gate_choice(settings: Mapping[str, Any]) -> GateChoice:
    found = gate_choices().get(settings["gate_kind"])
    if found is None:
        raise ValueError(f"gate_kind must be one of {', '.join(gate_choices())}, got {settings['gate_kind']!r}")
    return found.of(settings)


def gate_from(settings: Mapping[str, Any]) -> CountingGate:
    return gate_choice(settings).gate(unit_of(settings))


def run_event(settings: Mapping[str, Any]) -> GateEvent:
    """Return the event of one run of a project's gate, counted by itself; `ValueError` where there is no gate."""
    return gate_choice(settings).run_event(unit_of(settings))


def first_event(settings: Mapping[str, Any]) -> Event:
    return gate_choice(settings).event(unit=unit_of(settings))
