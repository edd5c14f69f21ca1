"""The gates of a crowd project: their numbers, declared once, and the mechanism that each of them describes."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from privacy.accounting.cost import Unit
from privacy.accounting.event import Event
from privacy.accounting.events_window import MOST_UPLOADS_TOGETHER, GateWindowEvent
from privacy.choices import Choice, Kind, Sound, parameter
from privacy.gate import KAnonymityGate, ThresholdGate
from privacy.normalizers import Normalizer
from privacy.threshold_gate import threshold_gate_at
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


GATES: Final[Mapping[str, type[GateChoice]]] = {choice.name: choice for choice in (SampledGate, NoisyGate)}
# What describes a gate of each kind beside what all have; a project keeps the settings of its own kind and no others.
GATE_FIELDS: Final = {"k_anonymity": ("gate_k", "gate_sampling_rate"), "threshold": ("gate_delta", "gate_floor")}
SHARED_GATE_FIELDS: Final = ("gate_epsilon", "texts_per_contributor", "gate_window")
ALL_GATE_FIELDS: Final = (
    *SHARED_GATE_FIELDS,
    *GATE_FIELDS["k_anonymity"],
    *GATE_FIELDS["threshold"],
)


def gate_from(settings: Mapping[str, Any]) -> KAnonymityGate | ThresholdGate:
    """Return the gate that the settings of a project describe; `ValueError` where they describe none."""
    return GATES[settings["gate_kind"]].of(settings).gate(_unit_of(settings))


def first_event(settings: Mapping[str, Any]) -> Event:
    """Return what the first upload through the gate of a project is charged; `ValueError` where there is no gate."""
    return GATES[settings["gate_kind"]].of(settings).event(unit=_unit_of(settings))


def _unit_of(settings: Mapping[str, Any]) -> Unit:
    return "contributor" if settings["privacy_unit"] == "contributor" else "record"


def gate_event(gate: KAnonymityGate | ThresholdGate, epsilon: float) -> Event:
    """Return what one run of a gate is charged for; the delta of a k-anonymity gate is computed at `epsilon`."""
    return gate.event() if isinstance(gate, ThresholdGate) else gate.event(epsilon)
