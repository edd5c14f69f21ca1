"""Events of choices that cost nothing by themselves: paid beforehand, or shown to nobody until a release pays."""

from dataclasses import dataclass
from typing import ClassVar

from privacy.accounting import checks, screens
from privacy.accounting.cost import Adjacency, Cost
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_selection import ExposureCappedScreenEvent
from privacy.accounting.events_training import FIXED_SLOTS, require_slot
from privacy.wording import as_message
from privacy.wording import gettext_noop as _


@dataclass(frozen=True, slots=True)
class ScreenRoundEvent(Event):
    """A further round of a screen with capped exposures; the entry that opened the screen paid for all its rounds.

    It descends from that entry or from the round before it, and examines only records whose looks are not used up.
    """

    q_hi: float
    q_lo: float
    kind: ClassVar[str] = "screen_round"
    words: ClassVar[EventWords] = EventWords(
        _("round of a screen"),
        _("coins of rate %(q_hi)s or %(q_lo)s, paid with the first round of the series"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        """Check the ranges."""
        screens.screen_losses(self.q_hi, self.q_lo)

    @property
    def needs_parent(self) -> bool:
        """It is free only as a part of what was paid."""
        return True

    @property
    def series_kinds(self) -> tuple[str, ...]:
        """The screen that was opened, or a round of it."""
        return (ExposureCappedScreenEvent.kind, self.kind)

    def check_parent(self, parent: Event | None) -> None:
        """Refuse a parent whose rates do not cover this round."""
        Event.check_parent(self, parent)
        if not isinstance(parent, ExposureCappedScreenEvent | ScreenRoundEvent):
            raise ValueError(
                as_message("a screen round must descend from the screen with capped exposures that opened it")
            )
        if self.q_hi > parent.q_hi or self.q_lo < parent.q_lo:
            raise ValueError(
                as_message(
                    "rates must lie within [{lowest}, {highest}], got [{q_lo}, {q_hi}]",
                    lowest=parent.q_lo,
                    highest=parent.q_hi,
                    q_lo=self.q_lo,
                    q_hi=self.q_hi,
                )
            )

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return zero: the worst course of a record through all rounds is already charged."""
        require_slot(self, adjacency)
        return Cost(0.0)

    def summary(self) -> str:
        """Return one sentence."""
        return as_message(
            "a further round of a paid screen with rates {q_hi:.4g} and {q_lo:.4g}", q_hi=self.q_hi, q_lo=self.q_lo
        )


@dataclass(frozen=True, slots=True)
class SecretChoiceEvent(Event):
    """Records chosen by secret coins of public rate at most `rate`; ids, number and times of them stay inside.

    What is computed from them pays when it is released, as a `secret_sample` of this rate.
    """

    rate: float
    kind: ClassVar[str] = "secret_choice"
    words: ClassVar[EventWords] = EventWords(
        _("secret choice"),
        _("secret coins of rate at most %(rate)s; paid when a model is released"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        """Check the ranges."""
        checks.rate("rate", self.rate)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return zero: nothing of the choice leaves the system."""
        require_slot(self, adjacency)
        return Cost(0.0)

    def summary(self) -> str:
        """Return one sentence."""
        return as_message(
            "records chosen by secret coins of rate at most {rate:.4g}, shown to nobody outside", rate=self.rate
        )
