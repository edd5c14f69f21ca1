"""A threshold on noisy counts, as crowd projects choose it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from annotation.choices.gate_base import BETWEEN, GateChoice
from privacy.accounting.cost import Unit
from privacy.accounting.events import ThresholdGateEvent
from privacy.choices import parameter
from privacy.gate.kanonymity import ThresholdGate
from privacy.gate.normalizers import Normalizer
from privacy.gate.threshold import threshold_gate_at
from privacy.wording import Message, as_message
from privacy.wording import gettext_noop as _

# A floor under 2 would let out what one person said.
LOWEST_FLOOR: Final = 2


@dataclass(frozen=True)
class NoisyGate(GateChoice):
    """A text passes whose count, with secret noise on it, is high enough."""

    name: ClassVar[str] = "threshold"
    label: ClassVar[str] = _("noisy threshold")
    random: ClassVar[str] = _("noise on the count")
    charged_as: ClassVar[type[ThresholdGateEvent]] = ThresholdGateEvent

    gate_delta: float = parameter(
        None,
        above=0,
        below=1,
        label=_("Gate: delta"),
        help=_("With a threshold, which follows from it and epsilon."),
        rule=BETWEEN,
    )
    gate_floor: int = parameter(
        None,
        at_least=LOWEST_FLOOR,
        label=_("Gate: floor"),
        help=_("With a threshold: what fewer than this many said never passes, whatever the noise."),
        rule=_("Must be at least 2, got {got}: else one person's words may pass."),
    )

    def gate(self, unit: Unit) -> ThresholdGate:
        """Return the mechanism."""
        return threshold_gate_at(
            self.gate_epsilon,
            self.gate_delta,
            unit,
            self.cap(unit),
            floor=self.gate_floor,
            normalizer=Normalizer(self.normalizer),
        )

    @classmethod
    def at_price(cls, epsilon: float, delta: float, *, unit: Unit, texts_per_contributor: int | None) -> list[Self]:
        """Return the one gate that costs so much."""
        gate = cls(
            gate_epsilon=epsilon,
            texts_per_contributor=texts_per_contributor,
            normalizer=Normalizer.L1,
            gate_delta=delta,
            gate_floor=LOWEST_FLOOR,
        )
        return [gate]

    def needed(self, unit: Unit) -> int:
        """Return the threshold, or the floor where that is higher."""
        gate = self.gate(unit)
        # Somebody who says m texts counts 1 / sqrt(m) for each of them.
        weight = math.sqrt(self.cap(unit) or 1) if gate.noise == "weighted_gaussian" else 1.0
        return max(gate.floor, math.ceil(gate.event().threshold * weight))

    def now(self) -> Message:
        """Tell managers when a text passes."""
        return as_message(
            "Now: a text passes when a count with noise on it is high enough, and never below {floor}.",
            floor=self.gate_floor,
        )

    def told(self, unit: Unit) -> Message:
        """Tell annotators what is true of a text that passed."""
        if unit == "contributor":
            return as_message(
                "Several people, never fewer than {floor}, said exactly this: enough of them for a count with noise on "
                "it to pass. Nobody's name, time or device is attached.",
                floor=self.gate_floor,
            )
        return as_message(
            "Several records, never fewer than {floor}, say exactly this: enough of them for a count with noise on it "
            "to pass. No name, time or device is attached.",
            floor=self.gate_floor,
        )

    def why(self, unit: Unit) -> Message:
        """Tell them why they see it."""
        if unit == "contributor":
            return as_message(
                "So many people said exactly this, never fewer than {floor}, that a count with secret noise on it was "
                "high enough to pass",
                floor=self.gate_floor,
            )
        return as_message(
            "So many records say exactly this, never fewer than {floor}, that a count with secret noise on it was high "
            "enough to pass",
            floor=self.gate_floor,
        )

    def named(self) -> str:
        """Return what it is called within a sentence."""
        return as_message("the threshold gate")

    def true_of(self) -> str:
        """Return what is literally true of a text that passed."""
        return as_message("never fewer than {floor} said it", floor=self.gate_floor)

    def recommended(self, best: int, other: GateChoice, takes: int) -> Message:
        """Say what it takes, and what the best of another kind takes."""
        return as_message(
            "Take the threshold gate: a text passes once about {best} say it, while {word_other}, the best of the "
            "other kind, takes about {takes}.",
            best=best,
            word_other=other.named(),
            takes=takes,
        )

    def unpayable(self, delta: float, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse a delta that is more than the pool's: it is that of the gate itself."""
        rule = as_message(
            "One upload through this gate costs delta {delta:.2g}, more than the pool's limit of {most:.2g}.",
            delta=delta,
            most=settings["pool_delta"],
        )
        return {"gate_delta": rule}
