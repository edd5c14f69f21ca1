"""Setup of a simulation: the public numbers and choices of a project."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import numpy as np

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.label_types.base import Teaching
from annotation.choices.selections import block_rates
from learner.estimators.choice import EstimatorChoice
from learner.strategies.base import QueryStrategy, StrategyChoice
from privacy.choices import Kind

SimulatedData = Literal["public", "digits", "made_up"]
# Rows of a simulated pool: more would take long, and at this many labels the curve has flattened.
MOST_ROWS: Final = 4000
# Releases beyond this change little and each is a training more.
MOST_RELEASES: Final = 6
MOST_DIMENSIONS: Final = 128


@dataclass(frozen=True, slots=True)
class Training:
    epsilon: float
    adjacency: Literal["null", "replace"] = "null"


@dataclass(frozen=True, slots=True)
class Setup:
    """Numbers of a project that decide how good its models become; all public.

    Attributes
    ----------
    parameters, declared, policy : mapping of str to object
        Parameters of selection and estimator; of a stream, what groups its answers into updates.
    answers : mapping of str to object
        The event of randomised answers, empty where none are.
    askable : int or None
        Most questions that coins leave of the records, where coins choose.
    """

    n_classes: int
    dimension: int
    records: int
    estimator: str
    training: Training
    selection: str
    parameters: Mapping[str, Any]
    labels_per_release: int
    releases: int
    round_size: int
    stream: bool
    policy: Mapping[str, Any] = field(default_factory=dict)
    askable: int | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    labels_per_record: int = 1

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Setup":
        return cls(**{**values, "training": Training(**values["training"])})

    @property
    def can_be_simulated(self) -> bool:
        return simulated_estimator(self) is not None and self.releases > 0 and bool(self.label_counts)

    @property
    def finds_spans(self) -> bool:
        choice = simulated_estimator(self)
        return choice is not None and Teaching.SPANS in choice.learns

    @property
    def block_rates(self) -> tuple[float, ...]:
        return block_rates(strategy_choice(self))

    @property
    def simulated_dimension(self) -> int:
        return min(self.dimension, MOST_DIMENSIONS)

    @property
    def simulated_records(self) -> int:
        return min(self.records, MOST_ROWS)

    @property
    def label_counts(self) -> list[int]:
        """Labels at each release, as many as the records allow."""
        if rates := self.block_rates:
            return [int(count) for count in np.cumsum(np.array(rates[: self.releases]) * self.records).round()]
        counts, following = [], self.labels_per_release
        most = self.records if self.askable is None else min(self.records, self.askable)
        for _ in range(self.releases):
            if following > most:
                break
            counts.append(following)
            following += self.labels_per_release
        return counts


def simulated_estimator(setup: Setup) -> type[EstimatorChoice] | None:
    choice = CATALOGUE.find(Kind.ESTIMATOR, setup.estimator)
    if choice is None or not issubclass(choice, EstimatorChoice):
        return None
    return choice


def simulated_strategy(setup: Setup) -> QueryStrategy:
    return strategy_choice(setup).strategy()


def strategy_choice(setup: Setup) -> StrategyChoice:
    choice = CATALOGUE.find(Kind.STRATEGY, setup.selection)
    assert choice is not None
    assert issubclass(choice, StrategyChoice)
    return choice.of(setup.parameters)
