"""Estimator of pools and streams: noisy differences of two classes, one step a batch, and the choice of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpal.recompute import PROGRAMS
from dpal.recompute.transcript import Session, Tell, Transcript, Weights
from learner.estimators.choice import PricedEstimator, Shape
from learner.estimators.descriptions import PublicWords
from learner.estimators.streaming import AnsweredBatch, StreamingLinearClassifier, public_start
from learner.linear_model import LinearModel
from privacy.accounting.events import MinibatchSgdEvent
from privacy.accounting.training import grid_slack, records_moved
from privacy.choices import Sound, parameter
from privacy.mechanisms.k_norm import EuclideanNoise
from privacy.mechanisms.randomness import random_source
from privacy.mechanisms.session import Measurement, MeasuringSession

GRID = 2.0**-30


def noisy_means(parameters: Mapping[str, Any], session: Session, tell: Tell) -> Weights:
    """Add up the noisy differences of all batches; a site's own program is a module of `dpal.recompute`."""
    weights = parameters["start"]
    for asked in parameters["asked"]:
        weights = weights + parameters["pace"] * session.ask("difference")[None] / asked
    return Weights(weights[:, :-1], weights[:, -1] * parameters["intercept_scaling"])


PROGRAMS["noisy_means"] = noisy_means


class NoisyMeans(StreamingLinearClassifier):
    """Add up, with noise, the difference of two classes in each batch."""

    fit_intercept = True
    program = "noisy_means"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        pace: float = 1.0,
        classes: Sequence[Any] | None = None,
        norm_bound: float = 1.0,
        intercept_scaling: float = 1.0,
        adjacency: Literal["null", "replace"] = "null",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.pace = pace
        self.classes = classes
        self.norm_bound = norm_bound
        self.intercept_scaling = intercept_scaling
        self.adjacency = adjacency
        self.random_state = random_state

    def _event(self, n_features: int, n_classes: int) -> MinibatchSgdEvent:
        # One record moves the sum by its own length.
        moved = records_moved(self.adjacency) * self._row_norm + grid_slack(GRID, n_features + 1)
        scale = moved / (self.epsilon * (1 - 1e-9))
        return MinibatchSgdEvent(scale, n_features + 1, norm_bound=self._row_norm, noise="k_norm", grid=GRID)

    def _begin(self, n_features: int, classes: NDArray[Any]) -> None:
        super()._begin(n_features, classes)
        self._take(np.zeros((1, n_features + 1)))
        self.begin_version()

    def begin_version(self) -> Self:
        self._start = self.weights_
        self._asked: list[int] = []
        self._record: list[Measurement] = []
        return self

    @property
    def transcript_(self) -> Transcript:  # type: ignore[override]  # made from the record
        public = {"start": self._start, "asked": self._asked, "pace": self.pace}
        return Transcript(self.program, public | {"intercept_scaling": self.intercept_scaling}, tuple(self._record))

    def _take(self, weights: NDArray[np.float64]) -> None:
        self.weights_ = weights
        self._store(list(weights))

    def start_from(self, coef: ArrayLike, intercept: ArrayLike) -> Self:
        n_features = np.shape(coef)[-1]
        self.start(n_features)
        weights, offsets = public_start(coef, intercept, shape=(1, n_features))
        self._take(np.column_stack([weights, offsets / self.intercept_scaling]))
        return self.begin_version()

    def state(self) -> dict[str, Any]:
        kept = {"updates": self.updates_, "simulated": self.simulated_, "transcript": self.transcript_.to_json()}
        return kept | {"weights": self.weights_.tolist(), "classes": self.classes_.tolist()}

    def resume(self, state: Mapping[str, Any]) -> Self:
        weights = np.array(state["weights"])
        self._begin(weights.shape[1] - 1, np.array(state["classes"]))
        self._take(weights)
        transcript = Transcript.from_json(state["transcript"])
        self._start, self._asked = transcript.parameters["start"], transcript.parameters["asked"]
        self._record = [Measurement(*answer) for answer in transcript.answers]
        self.updates_ = state["updates"]
        self.simulated_ = state["simulated"] or self._source.simulated
        return self

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        rows, labels = self._validated(X, y)
        learned = self.classes is None and random_source(self.random_state).simulated
        self._begin(rows.shape[1], self._learned_classes(labels) if learned else self._declared_classes())
        places = self._members(labels, self.classes_).argmax(axis=1)
        return self.learn_batches([AnsweredBatch(rows, places, max(1, len(rows)))], new=1)

    def first_model(self, words: PublicWords) -> LinearModel | None:
        return words.model() if words.say_something else None

    def learn_batches(self, batches: Sequence[AnsweredBatch], *, new: int) -> Self:
        event = self.privacy_event_
        assert isinstance(event, MinibatchSgdEvent)
        for batch in batches[len(batches) - new :]:
            # Rows answer this query alone, and the transcript keeps its answer.
            session = MeasuringSession({"difference": lambda batch=batch: self._difference(batch, event)})
            noisy = session.ask("difference")
            self._record += session.record
            self._asked = [*self._asked, batch.asked]
            self._take(self.weights_ + self.pace * noisy[None] / batch.asked)
            self.updates_ += 1
        return self

    def _difference(self, batch: AnsweredBatch, event: MinibatchSgdEvent) -> Measurement:
        signed = self._with_constant(batch.rows) * np.where(batch.classes == 1, 1.0, -1.0)[:, None]
        total = np.rint(signed / GRID).sum(axis=0) * GRID
        noisy = EuclideanNoise(event.noise_scale).release(total, grid=GRID, rng=self._source)
        return Measurement("difference", event.norm_bound, event.noise_scale, noisy)


@dataclass(frozen=True)
class Unhurried(PricedEstimator):
    """What a project chooses of it."""

    name: ClassVar[str] = "unhurried"
    label: ClassVar[str] = "noisy differences of class means"
    words: ClassVar[str] = "linear model of noisy differences of class means"

    pace: float = parameter(
        2.0, above=0, at_most=10, label="Pace", help="Length of a step.", rule="Above 0 and at most 10, not {got}."
    )

    def estimator(self, shape: Shape) -> NoisyMeans:
        return NoisyMeans(
            self.training_epsilon,
            pace=self.pace,
            classes=shape.classes,
            norm_bound=shape.norm_bound,
            intercept_scaling=shape.intercept_scaling,
            adjacency=shape.adjacency,
        )


@dataclass(frozen=True)
class UnhurriedStream(Unhurried):
    """The same for streams alone."""

    name: ClassVar[str] = "noisy_means"
    label: ClassVar[str] = "noisy differences of class means in a stream"
    sound: ClassVar[Sound] = Sound(oracles=("trusted",), arrivals=("stream",))
