"""k-anonymity on a secret sample, as crowd projects choose it."""

from dataclasses import dataclass
from typing import ClassVar

from annotation.choices.gate_base import BETWEEN, GateChoice
from privacy.accounting.cost import Unit
from privacy.gate import KAnonymityGate
from privacy.normalizers import Normalizer
from privacy.parameters import parameter
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class SampledGate(GateChoice):
    """A text passes that a secret sample holds k times."""

    name: ClassVar[str] = "k_anonymity"
    label: ClassVar[str] = _("k-anonymity on a secret sample")

    gate_k: int = parameter(
        None,
        at_least=2,
        label=_("Gate: k"),
        help=_("With k-anonymity: a text passes when the sample holds it this often."),
        rule=_("Must be at least 2, got {got}."),
    )
    gate_sampling_rate: float = parameter(
        None,
        above=0,
        below=1,
        label=_("Gate: sampling rate"),
        help=_("With k-anonymity: each record is looked at with this probability, by a secret coin."),
        rule=BETWEEN,
    )

    def gate(self, unit: Unit) -> KAnonymityGate:
        """Return the mechanism."""
        return KAnonymityGate(
            k=self.gate_k,
            sampling_rate=self.gate_sampling_rate,
            unit=unit,
            texts_per_contributor=self.cap(unit),
            normalizer=Normalizer(self.normalizer),
        )
