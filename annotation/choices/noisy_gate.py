"""A threshold on noisy counts, as crowd projects choose it."""

from dataclasses import dataclass
from typing import ClassVar

from annotation.choices.gate_base import BETWEEN, GateChoice
from privacy.accounting.cost import Unit
from privacy.gate import ThresholdGate
from privacy.normalizers import Normalizer
from privacy.parameters import parameter
from privacy.threshold_gate import threshold_gate_at
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class NoisyGate(GateChoice):
    """A text passes whose count, with secret noise on it, is high enough."""

    name: ClassVar[str] = "threshold"
    label: ClassVar[str] = _("noisy threshold")

    gate_delta: float = parameter(
        None,
        above=0,
        below=1,
        label=_("Gate: delta"),
        help=_("With a threshold, which follows from it and epsilon."),
        rule=BETWEEN,
    )
    # A floor under 2 would let out what one person said.
    gate_floor: int = parameter(
        None,
        at_least=2,
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
