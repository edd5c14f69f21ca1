"""What every gate of a crowd project declares: its price, and what the mechanism needs to know of people and texts."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from privacy.accounting.cost import Unit
from privacy.accounting.event import Event
from privacy.accounting.events_window import MOST_UPLOADS_TOGETHER, GateWindowEvent
from privacy.choices import Choice, Kind, Sound
from privacy.gate import KAnonymityGate, ThresholdGate
from privacy.normalizers import Normalizer
from privacy.parameters import parameter
from privacy.wording import gettext_noop as _

BETWEEN: Final = _("Must lie between 0 and 1, got {got}.")
MOST_TEXTS: Final = 100
NOBODY_IN_ONE_UPLOAD: Final = _(
    "A person may be in every upload, so counting several together is proved for one record alone; leave it empty, and "
    "each upload pays by itself."
)


@dataclass(frozen=True)
class GateChoice(Choice):
    """What every gate has: its price, a cap on the texts of one person, and how far texts are made alike."""

    kind: ClassVar[Kind] = Kind.GATE
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

    @abstractmethod
    def gate(self, unit: Unit) -> KAnonymityGate | ThresholdGate:
        """Return the mechanism; `ValueError` where there is none with these numbers."""

    def event(self, *, unit: Unit, **circumstances: Any) -> Event:
        """Return what the first run is charged for."""
        once = gate_event(self.gate(unit), self.gate_epsilon)
        return once if self.gate_window is None else GateWindowEvent.next_of(None, once, window=self.gate_window)

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse to count uploads together where people are protected."""
        refused = self.gate_window is not None and settings["privacy_unit"] != "record"
        return {"gate_window": NOBODY_IN_ONE_UPLOAD} if refused else {}

    def cap(self, unit: Unit) -> int | None:
        """Return how many texts of one person count, None where records are protected one by one."""
        return self.texts_per_contributor if unit == "contributor" else None


def gate_event(gate: KAnonymityGate | ThresholdGate, epsilon: float) -> Event:
    """Return what one run of a gate is charged for; the delta of a k-anonymity gate is computed at `epsilon`."""
    return gate.event() if isinstance(gate, ThresholdGate) else gate.event(epsilon)
