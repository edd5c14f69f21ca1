"""What every gate of a crowd project declares: its price, and what the mechanism needs to know of people and texts."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from privacy.accounting.cost import Unit
from privacy.accounting.event import Event
from privacy.accounting.gate_events import MOST_UPLOADS_TOGETHER, GateEvent, GateWindowEvent
from privacy.choices import Choice, Kind, Parameter, Sound, parameter
from privacy.gate.counting import CountingGate
from privacy.gate.normalizers import Normalizer
from privacy.wording import Message, as_message
from privacy.wording import gettext_noop as _

BETWEEN: Final = _("Must lie between 0 and 1, got {got}.")
MOST_TEXTS: Final = 100
NOBODY_IN_ONE_UPLOAD: Final = _(
    "A person may be in every upload, so counting several together is proved for one record alone; leave it empty, and "
    "each upload pays by itself."
)
ONE_UPLOAD_ALONE: Final = _(
    "This gate has no proof over uploads that are counted together; leave it empty, and each upload pays by itself."
)


@dataclass(frozen=True)
class GateChoice(Choice):
    """What every gate has: its price, a cap on the texts of one person, and how far texts are made alike."""

    kind: ClassVar[Kind] = Kind.GATE
    # What of it is random, beside that of others; and what helps, where nothing passed, that this gate is not.
    random: ClassVar[str] = ""
    instead: ClassVar[str] = ""
    # Whether its epsilon is charged for each text of a contributor, and not once for the whole gate.
    charged_by_text: ClassVar[bool] = False
    # Of which class the event of its runs is: that says what they are proved for beside one upload by itself.
    charged_as: ClassVar[type[GateEvent]] = GateEvent  # type: ignore[type-abstract]
    sound: ClassVar[Sound] = Sound(
        oracles=("crowd",),
        arrivals=("pool",),
        why_not={
            "trusted": _("A gate stands before strangers; experts see the records."),
            "stream": _("A gate counts whole uploads, so nothing of a stream could pass it to a crowd."),
        },
    )

    gate_epsilon: float = parameter(
        None,
        above=0,
        label=_("Gate: epsilon"),
        help=_("With k-anonymity: of one text, and delta follows from k and the rate. Else: of the whole gate."),
        rule=_("Must be above 0, got {got}."),
    )
    texts_per_contributor: int | None = parameter(
        None,
        at_least=1,
        at_most=MOST_TEXTS,
        label=_("Gate: texts per contributor"),
        help=_("More texts of one person cost that many times more."),
    )
    normalizer: str = parameter(
        None,
        options={rule.value: rule.summary for rule in Normalizer},
        label=_("What annotators see of a text"),
        help=_("Texts that look alike afterwards count as one: a higher level lets more pass and says less."),
    )

    gate_window: int | None = parameter(
        None,
        at_least=1,
        at_most=MOST_UPLOADS_TOGETHER,
        label=_("Gate: uploads counted together"),
        help=_(
            "Empty: each upload is counted and paid for by itself. Else: the newest so many are counted together, and "
            "the first pays the gate so many times for all uploads. No record may stand in two of them."
        ),
    )

    @classmethod
    def facts(cls) -> dict[str, Any]:
        """Return also what a project with this gate must say, and whether it may count uploads together."""
        needed = [each.name for each in cls.own_parameters() if not each.optional]
        together = cls.charged_as.proved_in_windows
        return {**super().facts(), "needs": ["gate_epsilon", *needed], "uploads_together": together}

    @classmethod
    def own_parameters(cls) -> list[Parameter]:
        """Return what this gate has beside what every gate has."""
        shared = {each.name for each in GateChoice.parameters()}
        return [each for each in cls.parameters() if each.name not in shared]

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
    def now(self) -> Message:
        """Tell managers when a text passes."""

    @abstractmethod
    def told(self, unit: Unit) -> Message:
        """Tell annotators what is true of a text that passed."""

    @abstractmethod
    def why(self, unit: Unit) -> Message:
        """Tell them why they see it; the promise of the project goes on from it, so it ends without a stop."""

    def called(self) -> str:
        """Return what one of the gates at a price is called in a table of them."""
        return self.label

    def named(self) -> str:
        """Return what it is called within a sentence."""
        return self.called()

    def true_of(self) -> str:
        """Return what is literally true of a text that passed, in a few words."""
        return ""

    def recommended(self, best: int, other: "GateChoice", takes: int) -> Message:
        """Say that this gate passes what `best` say, and the best of another kind what `takes` say."""
        return as_message(
            "Take this gate, {word_gate}: a text passes once about {best} say it, while {word_other} takes about "
            "{takes}.",
            word_gate=self.called(),
            best=best,
            word_other=other.named(),
            takes=takes,
        )

    def run_event(self, unit: Unit) -> GateEvent:
        """Return what one run is charged for, whatever else is counted with it: the event of the mechanism that runs.

        Raises
        ------
        TypeError
            If that is no event of the declared class, or hides the presence of others than the gate does.
        """
        gate = self.gate(unit)
        event = gate.event(self.gate_epsilon)
        if not isinstance(event, self.charged_as) or not event.unit == gate.unit == unit:
            raise TypeError(f"gate {self.name} does not pay for hiding each {unit}")
        return event

    @abstractmethod
    def unpayable(self, delta: float, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse a first run whose delta is more than the pool's, in words that say which setting helps."""

    def event(self, *, unit: Unit, **circumstances: Any) -> Event:
        """Return what the first run is charged for."""
        once = self.run_event(unit)
        return once if self.gate_window is None else GateWindowEvent.next_of(None, once, window=self.gate_window)

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse to count uploads together where people are protected, or without a proof of the gate's own."""
        if self.gate_window is None:
            return {}
        if settings["privacy_unit"] != "record":
            return {"gate_window": NOBODY_IN_ONE_UPLOAD}
        return {} if self.charged_as.proved_in_windows else {"gate_window": ONE_UPLOAD_ALONE}

    def cap(self, unit: Unit) -> int | None:
        """Return how many texts of one person count, None where records are protected one by one."""
        return self.texts_per_contributor if unit == "contributor" else None


def unit_of(settings: Mapping[str, Any]) -> Unit:
    """Return whose presence a project's gate hides."""
    return "contributor" if settings["privacy_unit"] == "contributor" else "record"
