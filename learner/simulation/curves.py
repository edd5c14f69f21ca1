"""What a budget buys before anything is spent, simulated on data that is about nobody."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from learner.estimators.choice import INTERCEPT_SCALING, PrivateEstimator, Shape
from learner.estimators.label_sets import PrivateLabelSets
from learner.linear_model import LinearModel
from learner.simulation.setup import Setup, simulated_estimator, simulated_strategy
from learner.strategies.blocks import draw_blocks
from learner.strategies.random import RandomChoice
from privacy.accounting.event import event_from_json
from privacy.accounting.events import AnswersEvent
from privacy.mechanisms.randomness import SimulationRandom

SimulatedData = Literal["digits", "made_up"]
SEEDS: Final = 5
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


def simulated(setup: Setup, data: SimulatedData, *, seeds: int = SEEDS, private: bool = True) -> list[CurvePoint]:
    """Return the accuracy at each release, over seeds."""
    played = _run if private else _clear_run
    runs = [list(played(setup, data, seed)) for seed in range(seeds)]
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


def _run(setup: Setup, data: SimulatedData, seed: int) -> Iterator[tuple[int, float, float]]:
    """Yield labels, accuracy and macro-averaged F1 at each release of one simulated project."""
    rng = np.random.default_rng((20_261_121, seed))
    X, y, X_test, y_test = _pool(data, setup, rng)
    asked: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    model: LinearModel | None = None
    noise = np.random.default_rng((20_261_122, seed))
    blocks = draw_blocks(len(X), setup.block_rates, SimulationRandom(rng)) if setup.block_rates else None
    for release, wanted in enumerate(setup.label_counts, start=1):
        if blocks is not None:
            rows = np.flatnonzero(blocks == release)
            asked = np.concatenate([asked, rows])
        else:
            if wanted > len(X):
                return
            asked = _ask(setup, X, asked, model, wanted, SimulationRandom(rng))
            rows = asked
        model = _trained(setup, X[rows], y[rows], model if blocks is not None else None, noise)
        yield len(asked), *_scores(_predicted(model, X_test), y_test)


def _clear_run(setup: Setup, data: SimulatedData, seed: int) -> Iterator[tuple[int, float, float]]:
    """Yield the same of models without noise on as many labels, tuned once on the first of them."""
    from learner.simulation.trusted import clear_answers, strength_of  # noqa: PLC0415 - slow import

    X, y, X_test, y_test = _pool(data, setup, np.random.default_rng((20_261_121, seed)))
    rows, test = X.astype(np.float64), X_test.astype(np.float64)
    # Blocks are shares of the pool, which is smaller in a simulation.
    share = len(X) / setup.records if setup.block_rates else 1.0
    counts = [count for count in (round(wanted * share) for wanted in setup.label_counts) if count <= len(X)]
    most = min(max(counts, default=0), MOST_TUNED)
    strength = strength_of(rows[:most], y[:most]) if setup.n_classes <= MOST_TUNED_CLASSES else STRENGTH
    for count in counts:
        yield count, *_scores(clear_answers(rows[:count], y[:count], test, strength), y_test)


def _ask(
    setup: Setup,
    X: NDArray[np.float32],
    asked: NDArray[np.int64],
    model: LinearModel | None,
    wanted: int,
    rng: SimulationRandom,
) -> NDArray[np.int64]:
    """Return the rows asked about until there are as many answers as wanted."""
    while len(asked) < wanted:
        candidates = np.setdiff1d(np.arange(len(X)), asked)
        picks = min(setup.round_size, wanted - len(asked))
        strategy = RandomChoice() if model is None else simulated_strategy(setup)
        found = strategy.query(X, candidates, model, picks, rng)
        if not len(found):
            found = RandomChoice().query(X, candidates, None, picks, rng)
        asked = np.concatenate([asked, found[: wanted - len(asked)]])
    return asked


def _trained(
    setup: Setup, X: NDArray[np.float32], y: NDArray[np.int64], prior: LinearModel | None, noise: np.random.Generator
) -> LinearModel:
    estimator = _estimator(setup, prior)
    estimator.set_params(random_state=noise)
    if setup.stream:
        estimator.set_params(batch_size=min(setup.batch, max(1, len(X))))
    estimator.fit(X, np.eye(setup.n_classes, dtype=np.bool_)[y] if isinstance(estimator, PrivateLabelSets) else y)
    names = tuple(str(number) for number in range(setup.n_classes))
    return LinearModel(estimator.coef_, estimator.intercept_, names, estimator.multiclass)


def _estimator(setup: Setup, prior: LinearModel | None) -> PrivateEstimator:
    choice = simulated_estimator(setup)
    assert choice is not None
    values = {**setup.declared, "training_epsilon": setup.training.epsilon}
    answers = event_from_json(setup.answers) if setup.answers else None
    assert answers is None or isinstance(answers, AnswersEvent)
    return choice.of(values).estimator(
        Shape(
            list(range(setup.n_classes)),
            1.0,
            INTERCEPT_SCALING,
            prior,
            adjacency=setup.training.adjacency,
            answers=answers,
            open_answers=answers is None,
            labels_per_record=setup.labels_per_record,
        )
    )


def _scores(predicted: NDArray[np.int64], y: NDArray[np.int64]) -> tuple[float, float]:
    """Return accuracy and macro-averaged F1, of the classes that occur."""
    from sklearn.metrics import f1_score  # noqa: PLC0415 - slow import

    f1 = f1_score(y, predicted, labels=np.unique(y), average="macro", zero_division=0)
    return float((predicted == y).mean()), float(f1)


def _predicted(model: LinearModel, X: NDArray[np.float32]) -> NDArray[np.int64]:
    values = X @ model.coef.T + model.intercept
    return (values[:, 0] > 0).astype(np.int64) if len(model.coef) == 1 else values.argmax(axis=1)


def _pool(
    data: SimulatedData, setup: Setup, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Return rows and classes of a pool and of a test set; no row is longer than 1."""
    rows = setup.simulated_records
    if data == "digits":
        X, y = _digits(setup.n_classes, setup.simulated_dimension)
        order = rng.permutation(len(X))
        tests = len(X) // 4
        chosen = order[tests:]
        # A pool larger than the data is drawn with repetition; the test set shares no row with it.
        chosen = chosen[:rows] if rows <= len(chosen) else rng.choice(chosen, size=rows)
        return X[chosen], y[chosen], X[order[:tests]], y[order[:tests]]
    dimension = setup.drawn_in or setup.simulated_dimension
    centres = rng.normal(size=(setup.n_classes, dimension))
    centres *= CENTRE_LENGTH / np.linalg.norm(centres, axis=1, keepdims=True)
    y = rng.integers(setup.n_classes, size=rows + TEST_ROWS)
    # Where settings are compared, all read the leading columns of the same records.
    drawn = (centres[y] + rng.normal(size=(len(y), dimension))) * _lengths(dimension, falling=setup.falling)
    X = _clipped(drawn[:, : setup.simulated_dimension])
    return X[:rows], y[:rows], X[rows:], y[rows:]


@cache
def _lengths(dimension: int, *, falling: bool) -> NDArray[np.float64]:
    """Return how long each column is: all alike, or as a public corpus has them in the static encoder's table."""
    if not falling:
        return np.ones(dimension)
    from learner.features.static_encoder import public_statistics  # noqa: PLC0415 - slow import

    lengths: NDArray[np.float64] = np.sqrt(np.diag(public_statistics("minilm-static")[1])[:dimension])
    lengths /= np.sqrt(np.mean(lengths**2))
    return lengths


@cache
def _digits(n_classes: int, dimension: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    from sklearn.datasets import load_digits  # noqa: PLC0415 - slow import

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
