"""All accounting events by name, and the way back from stored JSON.

Importing this module registers every kind; the classes live beside their formulas in `events_selection`,
`events_answers`, `events_choice`, `events_counts`, `events_features`, `events_gate`, `events_labels`, `events_people`,
`events_running`, `events_series`, `events_snapshot`, `events_steps`, `events_sums`, `events_training`, `events_window`
and `events_online`.
"""

from dataclasses import dataclass
from typing import ClassVar

from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost, NoProof
from privacy.accounting.event import Event, EventWords, event_from_json
from privacy.accounting.events_answers import AnswersEvent, RandomizedAnswersEvent
from privacy.accounting.events_choice import ScreenRoundEvent, SecretChoiceEvent
from privacy.accounting.events_counts import CellCountsEvent
from privacy.accounting.events_features import SecondMomentsEvent
from privacy.accounting.events_gate import GateEvent, KAnonymityGateEvent, ThresholdGateEvent
from privacy.accounting.events_gaussian import GaussianObjectiveEvent
from privacy.accounting.events_labels import LabelTrainingEvent
from privacy.accounting.events_online import BanditOgdEvent, MutualInformationOgdEvent
from privacy.accounting.events_people import PeopleEvent
from privacy.accounting.events_running import RunningSumsEvent
from privacy.accounting.events_selection import (
    BernoulliScreenEvent,
    ExponentialScreenEvent,
    ExposureCappedScreenEvent,
    RandomChoiceEvent,
    StreamEvent,
    TopCEvent,
)
from privacy.accounting.events_series import SecretBlockEvent, SecretSeriesEvent
from privacy.accounting.events_snapshot import GateOfSnapshotEvent
from privacy.accounting.events_steps import CenteredStepsEvent, GradientStepsEvent
from privacy.accounting.events_sums import SumsEvent
from privacy.accounting.events_training import (
    GaussianEvent,
    MinibatchSgdEvent,
    ObjectivePerturbationEvent,
    OutputPerturbationEvent,
    SecretSampleEvent,
)
from privacy.accounting.events_window import GateWindowEvent
from privacy.wording import as_message
from privacy.wording import gettext_noop as _


@dataclass(frozen=True, slots=True)
class PostProcessingEvent(Event):
    """Work on outputs that are already paid for; it costs nothing and names what it descends from."""

    operation: str
    kind: ClassVar[str] = "post_processing"
    words: ClassVar[EventWords] = EventWords(
        _("paid outputs only"),
        _("computed from paid outputs only"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = frozenset(ADJACENCIES)

    def __post_init__(self) -> None:
        """Check that the operation is named."""
        if not self.operation.strip():
            raise ValueError("operation must be named, got an empty text")

    @property
    def needs_parent(self) -> bool:
        """Free work is free only as a descendant."""
        return True

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return zero."""
        return Cost(0.0)

    def summary(self) -> str:
        """Return one sentence."""
        return as_message("{word_operation}, computed from paid outputs only", word_operation=self.operation)


__all__ = [
    "AnswersEvent",
    "BanditOgdEvent",
    "BernoulliScreenEvent",
    "CellCountsEvent",
    "CenteredStepsEvent",
    "Cost",
    "Event",
    "ExponentialScreenEvent",
    "ExposureCappedScreenEvent",
    "GateEvent",
    "GateOfSnapshotEvent",
    "GateWindowEvent",
    "GaussianEvent",
    "GaussianObjectiveEvent",
    "GradientStepsEvent",
    "KAnonymityGateEvent",
    "LabelTrainingEvent",
    "MinibatchSgdEvent",
    "MutualInformationOgdEvent",
    "NoProof",
    "ObjectivePerturbationEvent",
    "OutputPerturbationEvent",
    "PeopleEvent",
    "PostProcessingEvent",
    "RandomChoiceEvent",
    "RandomizedAnswersEvent",
    "RunningSumsEvent",
    "ScreenRoundEvent",
    "SecondMomentsEvent",
    "SecretBlockEvent",
    "SecretChoiceEvent",
    "SecretSampleEvent",
    "SecretSeriesEvent",
    "StreamEvent",
    "SumsEvent",
    "ThresholdGateEvent",
    "TopCEvent",
    "event_from_json",
]
