"""Gate with a noisy threshold of fixed delta, as projects choose it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from annotation.choices.gates import GateChoice
from privacy.accounting.cost import Unit
from privacy.accounting.events import ThresholdGateEvent
from privacy.choices import parameter
from privacy.gate.kanonymity import ThresholdGate
from privacy.gate.normalizers import Normalizer
from privacy.gate.threshold import threshold_gate_at
from privacy.wording import Message, as_message

DELTA = 2e-6


@dataclass(frozen=True)
class Halfway(GateChoice):
    """A noisy threshold of a fixed delta, whose floor is half of what a project wants to hear."""

    name: ClassVar[str] = "halfway"
    label: ClassVar[str] = "half of what is wanted"

    charged_as: ClassVar[type[ThresholdGateEvent]] = ThresholdGateEvent

    gate_voices: int = parameter(
        12, at_least=4, at_most=60, label="Gate: voices", help="Half of them must be there.", rule="4 to 60, not {got}."
    )

    def gate(self, unit: Unit) -> ThresholdGate:
        rule = Normalizer(self.normalizer)
        return threshold_gate_at(
            self.gate_epsilon, DELTA, unit, self.cap(unit), floor=self.gate_voices // 2, normalizer=rule
        )

    def unpayable(self, delta: float, settings: Mapping[str, Any]) -> Mapping[str, str]:
        return {"pool_delta": as_message("This gate always costs delta {delta:.2g}.", delta=delta)}

    @classmethod
    def at_price(cls, epsilon: float, delta: float, *, unit: Unit, texts_per_contributor: int | None) -> list[Self]:
        if delta < DELTA:
            return []
        return [cls(gate_epsilon=epsilon, texts_per_contributor=texts_per_contributor, normalizer="L1")]

    def needed(self, unit: Unit) -> int:
        return self.gate_voices

    def passes(self) -> Message:
        return as_message("{voices} voices are wanted.", voices=self.gate_voices)

    def told(self, unit: Unit) -> Message:
        return as_message("About {voices} voices said this.", voices=self.gate_voices)

    def why(self, unit: Unit) -> Message:
        return as_message("About {voices} voices were wanted, and half of them came", voices=self.gate_voices)
