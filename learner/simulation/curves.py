"""Accuracy of a simulated project on data that is about nobody."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from threadpoolctl import threadpool_limits

from learner.estimators.choice import INTERCEPT_SCALING, PrivateEstimator, Shape
from learner.estimators.pick import PickedFit
from learner.linear_model import LinearModel
from learner.simulation.crowd import CrowdPlay, CrowdPool
from learner.simulation.setup import Setup, SimulatedData, simulated_estimator, simulated_strategy, strategy_choice
from learner.simulation.spans import PublicSpans, span_scores
from learner.simulation.stream import StreamPlay, StreamSettings
from learner.simulation.task import SimulationTask
from learner.simulation.trusted import TrustedSettings, clear_answers, course, rounds, strength_of
from learner.strategies.base import strategy_behind
from privacy.accounting.event import event_from_json
from privacy.accounting.events import AnswersEvent
from privacy.choices import Kind
from privacy.mechanisms.randomness import SimulationRandom

Said = NDArray[np.int64]
TEST_ROWS: Final = 1000
# Labels and classes on which a model without noise is tuned; more only take longer. Else it has a middling strength.
MOST_TUNED: Final = 600
MOST_TUNED_CLASSES: Final = 20
STRENGTH: Final = 10.0
# Length of the line between two classes' centres and the middle of all, in standard deviations.
CENTRE_LENGTH: Final = 2.0


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Accuracy over seeds after so many labels: mean, smallest, largest; and the mean of macro-averaged F1."""

    labels: int
    mean: float
    low: float
    high: float
    macro_f1: float


@dataclass(frozen=True, slots=True)
class PublicRows:
    """Public rows, shape (n, dimension), their classes, version 0 and what a first fit starts from, if anything.

    `has_examples` says that version 0 was made of examples of every class, `picks` that noisy counts of right answers
    decide how far a release goes from the start, `of_answers` that trainings are charged for another label.
    """

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    version_0: LinearModel | None = None
    start: LinearModel | None = None
    has_examples: bool = False
    picks: bool = False
    of_answers: bool = False

    def __len__(self) -> int:
        return len(self.X)


def pool_rows(public: PublicRows | PublicSpans) -> int:
    """Return how many rows a simulated pool has; a quarter is kept to measure on."""
    return len(public) - len(public) // 4


# The data that a setup is simulated on: a kind, or rows of one's own.
Source = SimulatedData | PublicRows | PublicSpans


def references(source: Source, setup: Setup) -> dict[str, float]:
    """Return the accuracy of always one answer and, where words name the classes, of version 0."""
    if isinstance(source, PublicSpans):
        return {} if source.version_0 is None else {"version_0": source.f1_of(source.version_0)[0]}
    if isinstance(source, PublicRows):
        found = {"constant": float(np.bincount(source.y).max() / len(source.y))}
        if (first := source.version_0) is not None:
            named = first.leaders(first.decision_function(source.X.astype(np.float64)))
            found["version_0"] = float((named == source.y).mean())
        return found
    _X, y, _X_test, _y_test = _pool(source, setup, np.random.default_rng(20_261_121))
    return {"constant": float(np.bincount(y).max() / len(y))}


def simulated(setup: Setup, data: Source, *, seeds: int, private: bool = True) -> list[CurvePoint]:
    with threadpool_limits(limits=1, user_api="blas"):
        runs = [list(_scored(setup, data, seed, private=private)) for seed in range(seeds)]
    shortest = min(len(run) for run in runs)
    points = []
    for place in range(shortest):
        labels, accuracies, f1 = (np.array([run[place][part] for run in runs]) for part in range(3))
        points.append(
            CurvePoint(
                round(float(labels.mean())),
                float(accuracies.mean()),
                float(accuracies.min()),
                float(accuracies.max()),
                float(f1.mean()),
            )
        )
    return points


def _scored(setup: Setup, data: Source, seed: int, *, private: bool) -> Iterator[tuple[int, float, float]]:
    if isinstance(data, PublicSpans):
        values = _values_of(setup) | {"maximum_releases": setup.releases}
        yield from span_scores(setup, data, values, seed=seed, private=private)
        return
    played = _run if private else _clear_run
    for labels, said, y in played(setup, data, seed):
        yield (labels, *_scores(said, y))


def _run(setup: Setup, data: SimulatedData | PublicRows, seed: int) -> Iterator[tuple[int, Said, Said]]:
    rng = np.random.default_rng((20_261_121, seed))
    X, y, X_test, y_test = _pool(data, setup, rng)
    source = SimulationRandom(rng)
    counts = [count for count in setup.label_counts if count <= len(X)]
    test = X_test.astype(np.float64)
    public = data if isinstance(data, PublicRows) else PublicRows(X, y)
    names = tuple(map(str, range(setup.n_classes))) if public.start is None else public.start.classes
    if setup.stream:
        counts = setup.label_counts
        task = SimulationTask((), y, (), y_test, names, rows=X, test_rows=X_test, label_counts=tuple(counts))
        play = StreamPlay.of_rows(task, StreamSettings(_values_of(setup), setup.n_classes), X.astype(np.float64), test)
        found = play.answers(seed, chosen=True)
    elif setup.block_rates:
        values = _values_of(setup) | {"maximum_releases": setup.releases}
        settings = TrustedSettings(values, setup.n_classes, in_series=True, has_examples=public.has_examples)
        rows = X.astype(np.float64)
        found, asked = course(settings, rows, y, test, classes=names, prior=public.start, rng=source)
        counts = np.cumsum([len(block) for block in asked]).tolist()
    elif (trained := simulated_estimator(setup)) is not None and trained.learns_responses:
        event = event_from_json(setup.answers) if setup.answers else None
        assert event is None or isinstance(event, AnswersEvent)
        play_crowd = CrowdPlay(
            classes=names,
            pool=CrowdPool((), np.ones(len(X)), tuple(y[:, None]), len(X), len(X), assumed=True),
            rows=X,
            prior=public.start,
            overlap=1,
            round_size=setup.round_size,
            event=event,
            rng=source,
        )
        strategy = strategy_behind(strategy_choice(setup), None if event is None else event.epsilon)
        found = play_crowd.course(strategy, test, label_counts=counts)
    else:
        estimator = _estimator(setup, public)
        found = rounds(
            estimator.set_params(random_state=np.random.default_rng((20_261_122, seed))),
            simulated_strategy(setup),
            X,
            y,
            test,
            classes=names,
            label_counts=counts,
            round_size=setup.round_size,
            rng=source,
        )
    yield from ((count, said, y_test) for count, said in zip(counts, found, strict=True))


def _clear_run(setup: Setup, data: SimulatedData | PublicRows, seed: int) -> Iterator[tuple[int, Said, Said]]:
    """Yield the same of models without noise on as many labels, tuned once on the first of them."""
    X, y, X_test, y_test = _pool(data, setup, np.random.default_rng((20_261_121, seed)))
    rows, test = X.astype(np.float64), X_test.astype(np.float64)
    # Blocks are shares of the pool, which is smaller in a simulation.
    share = len(X) / setup.records if setup.block_rates else 1.0
    counts = [count for count in (round(wanted * share) for wanted in setup.label_counts) if count <= len(X)]
    most = min(max(counts, default=0), MOST_TUNED)
    strength = strength_of(rows[:most], y[:most]) if setup.n_classes <= MOST_TUNED_CLASSES else STRENGTH
    for count in counts:
        yield count, clear_answers(rows[:count], y[:count], test, strength), y_test


def _values_of(setup: Setup) -> dict[str, Any]:
    chosen = {Kind.STRATEGY.key: setup.selection, Kind.ESTIMATOR.key: setup.estimator}
    prices = {"training_epsilon": setup.training.epsilon, "training_delta": setup.declared.get("training_delta", 0.0)}
    limits = {"pool_epsilon": math.inf, "pool_delta": math.inf}
    return {**setup.parameters, **setup.declared, **setup.policy, **chosen, **prices, **limits}


def _estimator(setup: Setup, public: PublicRows) -> PrivateEstimator:
    choice = simulated_estimator(setup)
    assert choice is not None
    shape = Shape(
        list(range(setup.n_classes)),
        1.0,
        INTERCEPT_SCALING,
        public.start,
        adjacency=setup.training.adjacency,
        labels_per_record=setup.labels_per_record,
        has_examples=public.has_examples,
    )
    estimator = choice.of({**setup.declared, "training_epsilon": setup.training.epsilon}).estimator(shape)
    if not public.picks or public.start is None:
        return estimator
    return PickedFit(estimator, public.start, of_answers=public.of_answers)


def _scores(predicted: Said, y: Said) -> tuple[float, float]:
    f1 = f1_score(y, predicted, labels=np.unique(y), average="macro", zero_division=0)
    return float((predicted == y).mean()), float(f1)


def _pool(
    data: SimulatedData | PublicRows, setup: Setup, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Return rows and classes of a pool and of a test set; no row is longer than 1."""
    rows = setup.simulated_records
    if data == "digits" or isinstance(data, PublicRows):
        rows_and_classes = (data.X, data.y) if isinstance(data, PublicRows) else None
        X, y = rows_and_classes or _digits(setup.n_classes, setup.simulated_dimension)
        order = rng.permutation(len(X))
        tests = len(X) // 4
        chosen = order[tests:]
        # A pool larger than the data is drawn with repetition; the test set shares no row with it.
        chosen = chosen[:rows] if rows <= len(chosen) else rng.choice(chosen, size=rows)
        return X[chosen], y[chosen], X[order[:tests]], y[order[:tests]]
    dimension = setup.simulated_dimension
    centres = rng.normal(size=(setup.n_classes, dimension))
    centres *= CENTRE_LENGTH / np.linalg.norm(centres, axis=1, keepdims=True)
    y = rng.integers(setup.n_classes, size=rows + TEST_ROWS)
    X = _clipped(centres[y] + rng.normal(size=(len(y), dimension)))
    return X[:rows], y[:rows], X[rows:], y[rows:]


@cache
def _digits(n_classes: int, dimension: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    images = load_digits()
    X = images.data / 16.0 - 0.5
    if dimension < X.shape[1]:
        X = X @ np.random.default_rng(0).normal(size=(X.shape[1], dimension)) / math.sqrt(dimension)
    # Neighbouring digits make a class, so that fewer classes than ten use all the data and stay hard to tell apart.
    return _clipped(X), (images.target * n_classes // 10).astype(np.int64)


def _clipped(X: NDArray[np.float64]) -> NDArray[np.float32]:
    # A little shorter, since float32 may round a row beyond the bound.
    short: NDArray[np.float32] = (X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-6))).astype(
        np.float32
    )
    return short
