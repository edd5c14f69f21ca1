"""All accounting events by name, and the way back from stored JSON. Importing this module registers every kind."""

from dataclasses import dataclass
from typing import ClassVar

from privacy.accounting import checks
from privacy.accounting.answers import AnswersEvent, LabelTrainingEvent, RandomizedAnswersEvent
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost, NoProof, Unit, no_proof
from privacy.accounting.counts import ClassCountsEvent, MeasuredFitEvent, PickedFitEvent
from privacy.accounting.event import Event, EventWords, counted_words, event_from_json
from privacy.accounting.gate_events import (
    ComposedCappedGateEvent,
    ComposedGateWindowEvent,
    GateEvent,
    GateOfSnapshotEvent,
    GateWindowEvent,
    KAnonymityGateEvent,
    ThresholdGateEvent,
)
from privacy.accounting.mutual_information import BanditOgdEvent, MutualInformationOgdEvent
from privacy.accounting.selection import (
    BernoulliScreenEvent,
    ExponentialScreenEvent,
    ExposureCappedScreenEvent,
    RandomChoiceEvent,
    ScreenRoundEvent,
    SecretChoiceEvent,
    StreamEvent,
    TopCEvent,
)
from privacy.accounting.series import SecretBlockEvent, SecretSeriesEvent
from privacy.accounting.steps import CenteredStepsEvent, GradientStepsEvent, SpanStepsEvent
from privacy.accounting.sums import RunningSumsEvent, SumsEvent
from privacy.accounting.training import (
    GaussianEvent,
    MinibatchSgdEvent,
    ObjectivePerturbationEvent,
    OutputPerturbationEvent,
    SecretSampleEvent,
)
from privacy.wording import as_message, ngettext_noop
from privacy.wording import gettext_noop as _


@dataclass(frozen=True, slots=True)
class PostProcessingEvent(Event):
    """Work on outputs that are already paid for; it costs nothing and names what it descends from."""

    operation: str
    kind: ClassVar[str] = "post_processing"
    words: ClassVar[EventWords] = EventWords(_("paid outputs only"), _("paid outputs only"))
    valid_for: ClassVar[frozenset[Adjacency]] = frozenset(ADJACENCIES)

    def __post_init__(self) -> None:
        if not self.operation.strip():
            raise ValueError("operation must be named, got an empty text")

    @property
    def needs_parent(self) -> bool:
        return True

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        return Cost(0.0)

    def summary(self) -> str:
        return f"{self.operation}, computed from paid outputs only"


__all__ = [
    "AnswersEvent",
    "BanditOgdEvent",
    "BernoulliScreenEvent",
    "CenteredStepsEvent",
    "ClassCountsEvent",
    "ComposedCappedGateEvent",
    "ComposedGateWindowEvent",
    "Cost",
    "Event",
    "ExponentialScreenEvent",
    "ExposureCappedScreenEvent",
    "GateEvent",
    "GateOfSnapshotEvent",
    "GateWindowEvent",
    "GaussianEvent",
    "GradientStepsEvent",
    "KAnonymityGateEvent",
    "LabelTrainingEvent",
    "MeasuredFitEvent",
    "MinibatchSgdEvent",
    "MutualInformationOgdEvent",
    "NoProof",
    "ObjectivePerturbationEvent",
    "OutputPerturbationEvent",
    "PeopleEvent",
    "PickedFitEvent",
    "PostProcessingEvent",
    "RandomChoiceEvent",
    "RandomizedAnswersEvent",
    "RunningSumsEvent",
    "ScreenRoundEvent",
    "SecretBlockEvent",
    "SecretChoiceEvent",
    "SecretSampleEvent",
    "SecretSeriesEvent",
    "SpanStepsEvent",
    "StreamEvent",
    "SumsEvent",
    "ThresholdGateEvent",
    "TopCEvent",
    "event_from_json",
]

# More records of one person than this leave nothing to promise; it also keeps the squares within the ledger's columns.
MOST_RECORDS_PER_PERSON = 10_000


@dataclass(frozen=True, slots=True)
class PeopleEvent(Event):
    """An operation of one project, charged to the population its records are of.

    `event` is the operation as the project's account paid for it in entry `entry` of `scope`. Where that protects one
    record and the population one person, a person is a group of at most `records_per_person` records; where both
    protect the same, the declared number is how often one of them stands in the project, mostly once.
    """

    event: Event
    unit: Unit
    records_per_person: int
    scope: str
    entry: int
    kind: ClassVar[str] = "people"
    words: ClassVar[EventWords] = EventWords(
        _("paid together with a project"),
        ngettext_noop(
            "for a person with at most %(records_per_person)s record",
            "for a person with at most %(records_per_person)s records",
        ),
        counted="records_per_person",
    )
    valid_for: ClassVar[frozenset[Adjacency]] = frozenset(ADJACENCIES)

    def __post_init__(self) -> None:
        checks.one_of("unit", self.unit, ("record", "contributor"))
        checks.at_least("records_per_person", self.records_per_person, 1)
        checks.at_least("entry", self.entry, 1)
        if self.records_per_person > MOST_RECORDS_PER_PERSON:
            raise ValueError(f"records_per_person must be <= {MOST_RECORDS_PER_PERSON}, got {self.records_per_person}")
        if broken := unit_rule(str(getattr(self.event, "unit", "record")), self.unit, self.records_per_person):
            raise ValueError(broken)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return what the operation costs a person: group privacy over the declared number of records."""
        once = self.event.cost(adjacency=adjacency)
        if isinstance(self.event, SecretBlockEvent) and self.records_per_person > 1 and any(self.event.series.deltas):
            raise no_proof(
                self.event.kind,
                adjacency,
                "a group's delta needs the epsilon of the whole series, and an entry has its own part of it",
            )
        grouped = once.of_group(self.records_per_person)
        if grouped.delta == 1 and once.delta < 1:
            records = f"{self.records_per_person} records of one person"
            rule = f"its delta for {records} is 1: group privacy needs a finite epsilon"
            raise no_proof(self.event.kind, adjacency, rule)
        return grouped

    def summary(self) -> str:
        records = counted_words(self.records_per_person, "record")
        return f"{self.event.summary()}; for a person with at most {records}"


def unit_rule(account: str, population: str, records_per_person: int) -> str:
    if account not in ("record", "contributor"):
        return as_message("an account per {unit} cannot join a population", unit=account)
    if account == "contributor" and population == "record":
        return as_message("an account per contributor joins only a population of contributors")
    if account == "contributor" and records_per_person != 1:
        return as_message("records per person must be 1 for an account per contributor")
    return ""
