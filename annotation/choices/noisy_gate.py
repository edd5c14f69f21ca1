"""A threshold on noisy counts, as crowd projects choose it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from annotation.choices.gates import GateChoice, who_counts
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
    name: ClassVar[str] = "threshold"
    label: ClassVar[str] = _("noisy threshold")
    charged_as: ClassVar[type[ThresholdGateEvent]] = ThresholdGateEvent

    gate_delta: float = parameter(
        None,
        above=0,
        below=1,
        label=_("Gate: delta"),
        charged=True,
    )
    gate_floor: int = parameter(
        None,
        at_least=LOWEST_FLOOR,
        label=_("Gate: floor"),
        rule=_("Must be at least 2, got {got}: else one person's words may pass."),
    )

    def gate(self, unit: Unit) -> ThresholdGate:
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
        gate = cls(
            gate_epsilon=epsilon,
            texts_per_contributor=texts_per_contributor,
            normalizer=Normalizer.L1,
            gate_delta=delta,
            gate_floor=LOWEST_FLOOR,
        )
        return [gate]

    def needed(self, unit: Unit) -> int:
        gate = self.gate(unit)
        # Somebody who says m texts counts 1 / sqrt(m) for each of them.
        weight = math.sqrt(self.cap(unit) or 1) if gate.noise == "weighted_gaussian" else 1.0
        return max(gate.floor, math.ceil(gate.event().threshold * weight))

    def passes(self) -> Message:
        return as_message(
            "A text passes when its noisy count is high enough, and never below {floor}.",
            floor=self.gate_floor,
        )

    def told(self, unit: Unit) -> Message:
        return as_message(
            "At least {floor} {who} say exactly this. No name, time or device is attached.",
            floor=self.gate_floor,
            who=who_counts(unit),
        )

    def why(self, unit: Unit) -> Message:
        return as_message(
            "At least {floor} {who} say exactly this, and their noisy count passed",
            floor=self.gate_floor,
            who=who_counts(unit),
        )

    def unpayable(self, delta: float, settings: Mapping[str, Any]) -> Mapping[str, str]:
        rule = as_message(
            "One upload through this gate costs delta {delta:.2g}, more than the pool's limit of {most:.2g}.",
            delta=delta,
            most=settings["pool_delta"],
        )
        return {"gate_delta": rule}
