"""k-anonymity on a secret sample, as crowd projects choose it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from annotation.choices.gates import GateChoice, unit_of, who_counts
from privacy.accounting.cost import Unit
from privacy.accounting.events import KAnonymityGateEvent
from privacy.accounting.gate import frontier, gate_minimum_k
from privacy.choices import parameter
from privacy.gate.kanonymity import KAnonymityGate
from privacy.gate.normalizers import Normalizer
from privacy.wording import Message, as_message
from privacy.wording import gettext_noop as _

RATES: Final = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class SampledGate(GateChoice):
    name: ClassVar[str] = "k_anonymity"
    label: ClassVar[str] = _("k-anonymity on a secret sample")
    charged_by_text: ClassVar[bool] = True
    charged_as: ClassVar[type[KAnonymityGateEvent]] = KAnonymityGateEvent

    gate_k: int = parameter(
        None,
        at_least=2,
        label=_("Gate: k"),
        charged=True,
    )
    gate_sampling_rate: float = parameter(
        None,
        above=0,
        below=1,
        label=_("Gate: sampling rate"),
        charged=True,
    )

    def gate(self, unit: Unit) -> KAnonymityGate:
        return KAnonymityGate(
            k=self.gate_k,
            sampling_rate=self.gate_sampling_rate,
            unit=unit,
            texts_per_contributor=self.cap(unit),
            normalizer=Normalizer(self.normalizer),
        )

    @classmethod
    def at_price(cls, epsilon: float, delta: float, *, unit: Unit, texts_per_contributor: int | None) -> list[Self]:
        cap = texts_per_contributor or 1
        return [
            cls(
                gate_epsilon=choice.epsilon,
                texts_per_contributor=texts_per_contributor,
                normalizer=Normalizer.L1,
                gate_k=choice.k,
                gate_sampling_rate=choice.sampling_rate,
            )
            for choice in frontier(epsilon, delta, texts_per_contributor=cap, rates=RATES)
        ]

    def needed(self, unit: Unit) -> int:
        return math.ceil(self.gate_k / self.gate_sampling_rate)

    def numbers(self) -> Message:
        return as_message("k = {k}, rate {rate}", k=self.gate_k, rate=self.gate_sampling_rate)

    def passes(self) -> Message:
        return as_message(
            "A text passes when a secret sample of rate {rate} holds it {k} times or more.",
            rate=self.gate_sampling_rate,
            k=self.gate_k,
        )

    def told(self, unit: Unit) -> Message:
        return as_message(
            "At least {k} {who} in a secret random sample say exactly this. No name, time or device is attached.",
            k=self.gate_k,
            who=who_counts(unit),
        )

    def why(self, unit: Unit) -> Message:
        return as_message(
            "At least {k} {who} say exactly this in a secret random sample of {percent:g} % of all records",
            k=self.gate_k,
            who=who_counts(unit),
            percent=round(100 * self.gate_sampling_rate, 1),
        )

    def unpayable(self, delta: float, settings: Mapping[str, Any]) -> Mapping[str, str]:
        times = (self.cap(unit_of(settings)) or 1) * (self.gate_window or 1)
        enough = gate_minimum_k(self.gate_epsilon, settings["pool_delta"] / times, self.gate_sampling_rate)
        rule = as_message(
            "One upload through this gate costs delta {delta:.2g}, more than the pool's limit; k of {enough} or more "
            "fits, or a lower sampling rate.",
            delta=delta,
            enough=enough,
        )
        return {"gate_k": rule}
