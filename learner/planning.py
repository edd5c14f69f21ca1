"""What a budget buys before anything is spent, counted from the prices, and simulated on data that is about nobody."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from annotation.selection_rules import screen_series_event
from learner.blocks import block_rates, draw_blocks
from learner.estimators.catalogue import KINDS, Training, estimator_for
from learner.linear_model import LinearModel
from learner.online import Online, simulated_arrival
from learner.policies import ImmediateUpdates
from learner.strategies.catalogue import strategy_for
from privacy.accounting.screens import stream_epsilon
from privacy.mechanisms.randomness import SimulationRandom

Data = Literal["digits", "made_up"]

SEEDS: Final = 5
# Rows of a simulated pool: more would take long, and at this many labels the curve has flattened.
MOST_ROWS: Final = 4000
TEST_ROWS: Final = 1000
# Releases beyond this change little and each is a training more.
MOST_RELEASES: Final = 6
MOST_DIMENSIONS: Final = 128
# Records of a simulated stream that learns from each, and numbers of noise in all of its steps: a few seconds' work.
MOST_ARRIVALS: Final = 100_000
MOST_NOISE: Final = 20_000_000
MOST_STOPS: Final = 10
SHARES: Final = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8)
RATES: Final = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
# Log ratios of a falling rate's largest to its smallest.
SCALES: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
INTERCEPT_SCALING: Final = 0.2
# Length of the line between two classes' centres and the middle of all, in standard deviations.
CENTRE_LENGTH: Final = 2.0
SMALLEST_RATE: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Setup:
    """What a project's numbers mean for its models; everything is public.

    Attributes
    ----------
    n_classes, dimension, records : int
        Size of the problem; `records` is what may be asked about.
    estimator : str
        Name in the catalogue.
    training : Training
        What one training may cost, and its other numbers.
    selection : str
        Name of the query strategy; `scale` and `parameters` are its numbers.
    first_rate : float or None
        Rate of the first secret block, where blocks are secret.
    labels_per_release, releases, round_size : int
        Labels between trainings, trainings the budget pays for (a stream's are free), questions of a round.
    doubling, stream : bool
        Whether labels double between trainings; whether records come one by one.
    batch : int
        Answers of one update of a stream.
    selection_epsilon : float
        What choosing costs the account that pays for training, in all.
    hidden : bool
        Whether only trained models are published, never what was chosen: then one price covers both.
    askable : int or None
        Most questions that coins leave of the records, where coins choose.
    online : Online or None
        How a stream learns from each answer at once, where it does.
    """

    n_classes: int
    dimension: int
    records: int
    estimator: str
    training: Training
    selection: str
    scale: float
    parameters: Mapping[str, Any]
    first_rate: float | None
    labels_per_release: int
    releases: int
    round_size: int
    doubling: bool
    stream: bool
    batch: int
    selection_epsilon: float
    hidden: bool = False
    askable: int | None = None
    online: Online | None = None

    def as_json(self) -> dict[str, Any]:
        """Return plain values, by which equal setups are known."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Setup":
        """Return the setup that `as_json` described."""
        online = values.get("online")
        built = {"training": Training(**values["training"]), "online": online and Online(**online)}
        return cls(**{**values, **built})

    @property
    def can_be_simulated(self) -> bool:
        """Whether there is anything to simulate."""
        known = self.estimator in KINDS or self.online is not None
        return known and self.releases > 0 and bool(self.label_counts)

    @property
    def simulated_dimension(self) -> int:
        """Columns of a simulated record."""
        return min(self.dimension, MOST_DIMENSIONS)

    @property
    def simulated_records(self) -> int:
        """Records of a simulated pool or stream: as many as the project's where these are not too many."""
        if self.online is None:
            return min(self.records, MOST_ROWS)
        vectors = 1 if self.n_classes == 2 else self.n_classes
        return min(self.records, MOST_ARRIVALS, MOST_NOISE // (vectors * (self.simulated_dimension + 1)))

    @property
    def label_counts(self) -> list[int]:
        """Labels at each release, as many as the records allow; of learning at once at some of the releases."""
        if self.online is not None:
            return self._arrivals()
        if self.first_rate is not None:
            rates = block_rates(self.first_rate)[: self.releases]
            return [int(count) for count in np.cumsum(np.array(rates) * self.records).round()]
        counts, following = [], self.labels_per_release
        most = self.records if self.askable is None else min(self.records, self.askable)
        for _ in range(self.releases):
            if following > most:
                break
            counts.append(following)
            following = 2 * following if self.doubling else following + self.labels_per_release
        return counts

    def _arrivals(self) -> list[int]:
        """Return after how many records learning at once is looked at: where versions are due, if any are."""
        rows, each = self.simulated_records, self.labels_per_release
        if self.records < each:
            return []
        if rows < each:
            return sorted({-(-rows * part // MOST_STOPS) for part in range(1, MOST_STOPS + 1)})
        versions = rows // each
        counts = [*range(0, versions, -(-versions // MOST_STOPS)), versions]
        return [version * each for version in counts if version]


@dataclass(frozen=True, slots=True)
class Point:
    """Accuracy over seeds after so many labels: mean, smallest, largest."""

    labels: int
    mean: float
    low: float
    high: float


def simulated(setup: Setup, data: Data, *, seeds: int = SEEDS, private: bool = True) -> list[Point]:
    """Return the accuracy at each release, over seeds.

    Parameters
    ----------
    setup : Setup
        What to simulate; noise is that of the real mechanisms, drawn from seeds, so nothing here carries a guarantee.
    data : {"digits", "made_up"}
        scikit-learn's handwritten digits, or normal clouds around a centre for each class in the declared dimension.
    seeds : int
        Simulations of the whole, each with a pool, choices and noise of its own.
    private : bool
        False leaves out the noise of a stream that learns from each answer; the records and their order stay.

    Returns
    -------
    list of Point
        One for each release whose labels the simulated pool holds.
    """
    if setup.online is None:
        runs = [list(_run(setup, data, seed)) for seed in range(seeds)]
    else:
        runs = [list(_stream(setup, setup.online, data, seed, private=private)) for seed in range(seeds)]
    shortest = min(len(run) for run in runs)
    points = []
    for place in range(shortest):
        labels = [run[place][0] for run in runs]
        found = np.array([run[place][1] for run in runs])
        points.append(Point(round(float(np.mean(labels))), float(found.mean()), float(found.min()), float(found.max())))
    return points


def splits(setup: Setup, epsilon: float) -> list[Setup]:
    """Return setups that divide the same `epsilon` between choosing and training in other ways, if there are any.

    A secret sample pays for choosing by the size of its blocks: there the rate of the first block is varied, and
    training takes what the coins leave. Hidden windows likewise: choice and update have one price, so the rate near
    the boundary is varied over the same records. Elsewhere the share of choosing is; of a falling rate its range,
    since a skip costs at least what it costs at the smallest range.
    """
    if setup.first_rate is not None:
        return [found for rate in RATES if (found := _at_rate(setup, epsilon, rate)) is not None]
    if setup.selection == "top_c":
        return [found for share in SHARES if (found := _top_c_at(setup, epsilon, share)) is not None]
    if setup.selection == "bernoulli_screen" and setup.hidden:
        return [found for rate in RATES if (found := _hidden_at(setup, epsilon, rate)) is not None]
    if setup.selection in ("bernoulli_screen", "exposure_capped_screen", "version_space_screen"):
        return [found for share in SHARES if (found := _screen_at(setup, epsilon, share)) is not None]
    if setup.selection == "exponential_screen" and not setup.hidden:
        return [found for scale in SCALES if (found := _exponential_at(setup, epsilon, scale)) is not None]
    return []


def blocks_epsilon(training_epsilon: float, rates: "tuple[float, ...]") -> float:
    """Return what trainings on disjoint secret blocks cost a record together: each is amplified by its rate."""
    return sum(math.log1p(rate * math.expm1(training_epsilon)) for rate in rates)


def _at_rate(setup: Setup, epsilon: float, rate: float) -> Setup | None:
    rates = block_rates(rate)[: setup.releases]
    low, high = 0.0, epsilon + 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if blocks_epsilon(middle, rates) <= epsilon else (low, middle)
    if low < 1e-3:
        return None
    return replace(setup, first_rate=rate, training=replace(setup.training, epsilon=min(low, 10.0)))


def _top_c_at(setup: Setup, epsilon: float, share: float) -> Setup | None:
    low, high = 0.0, share * epsilon
    for _ in range(40):
        middle = (low + high) / 2
        fits = top_c_series_epsilon(setup, middle) <= share * epsilon
        low, high = (middle, high) if fits else (low, middle)
    training = (1 - share) * epsilon / max(1, setup.releases)
    if low <= 0 or training <= 0:
        return None
    spent = top_c_series_epsilon(setup, low)
    return replace(setup, scale=low, selection_epsilon=spent, training=replace(setup.training, epsilon=training))


def top_c_series_epsilon(setup: Setup, scale: float) -> float:
    """Return what all rounds of private top-c up to the last release cost a record; the first round is random."""
    strategy = strategy_for("top_c", scale=scale)
    counts = setup.label_counts
    asked = counts[0] if counts else 0
    total, series = 0.0, "opened"
    while counts and asked < counts[-1]:
        picks = min(setup.round_size, counts[-1] - asked)
        event = strategy.event_for(pool_size=max(setup.records - asked, picks), picks=picks, series=series)  # type: ignore[arg-type]
        total += event.cost().epsilon
        asked, series = asked + picks, "continued"
    return total


def _screen_at(setup: Setup, epsilon: float, share: float) -> Setup | None:
    looks = int(setup.parameters.get("exposures", 1))
    high = float(setup.parameters["high"])
    low = high * math.exp(-share * epsilon / looks)
    trainings = 1 if setup.stream else max(1, setup.releases)
    if low < SMALLEST_RATE:
        return None
    return replace(
        setup,
        parameters={**setup.parameters, "low": low},
        selection_epsilon=share * epsilon,
        training=replace(setup.training, epsilon=(1 - share) * epsilon / trainings),
    )


def _exponential_at(setup: Setup, epsilon: float, scale: float) -> Setup | None:
    settings = {
        "selection": "exponential_screen",
        "exponential_threshold": setup.parameters["threshold"],
        "selection_epsilon": scale,
    }
    looks = screen_series_event(settings).cost().epsilon
    # A record of a stream is skipped, or else selected and learned from; in a pool its looks are paid before.
    choosing, trainings = (scale, 1) if setup.stream else (looks, max(1, setup.releases))
    if looks > epsilon or choosing >= epsilon:
        return None
    return replace(
        setup,
        parameters={**setup.parameters, "epsilon": scale},
        selection_epsilon=choosing,
        training=replace(setup.training, epsilon=(epsilon - choosing) / trainings),
    )


def _hidden_at(setup: Setup, epsilon: float, rate: float) -> Setup | None:
    present = float(setup.parameters["high"])
    low = float(setup.parameters["low"]) * rate / present
    least, most = 0.0, epsilon + 20.0
    for _ in range(60):
        middle = (least + most) / 2
        fits = stream_epsilon(rate, low, middle, selection_visible=False, adjacency="null") <= epsilon
        least, most = (middle, most) if fits else (least, middle)
    labels = round(setup.labels_per_release * rate / present)
    if least < 1e-3 or labels < 2:
        return None
    return replace(
        setup,
        parameters={**setup.parameters, "high": rate, "low": low},
        labels_per_release=labels,
        batch=max(1, round(setup.batch * rate / present)),
        askable=None if setup.askable is None else round(setup.askable * rate / present),
        training=replace(setup.training, epsilon=min(least, 10.0)),
    )


def _run(setup: Setup, data: Data, seed: int) -> Iterator[tuple[int, float]]:
    """Yield labels and accuracy at each release of one simulated project."""
    rng = np.random.default_rng((20_261_121, seed))
    X, y, X_test, y_test = _pool(data, setup, rng)
    asked: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    model: LinearModel | None = None
    noise = np.random.default_rng((20_261_122, seed))
    blocks = draw_blocks(len(X), setup.first_rate, SimulationRandom(rng)) if setup.first_rate is not None else None
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
        yield len(asked), float((_predicted(model, X_test) == y_test).mean())


def _stream(setup: Setup, online: Online, data: Data, seed: int, *, private: bool) -> Iterator[tuple[int, float]]:
    """Yield records arrived and accuracy at each stop of one simulated stream."""
    X, y, X_test, y_test = _pool(data, setup, np.random.default_rng((20_261_121, seed)))
    # Columns of zeros change no score, but each has its noise, and a confirmation's price counts them.
    wide = ((0, 0), (0, setup.simulated_dimension - X.shape[1]))
    X, X_test = np.pad(X, wide), np.pad(X_test, wide)
    source = SimulationRandom(np.random.default_rng((20_261_122, seed)))
    learner = online.learner(
        list(range(setup.n_classes)), intercept_scaling=INTERCEPT_SCALING, private=private, random_state=source
    ).start(X.shape[1])
    names = tuple(str(number) for number in range(setup.n_classes))
    stops, policy = setup.label_counts, ImmediateUpdates()
    for stop in simulated_arrival(learner, X, y, policy=policy, ahead=online.ahead, stops=stops, rng=source):
        model = LinearModel(learner.coef_, learner.intercept_, names, "softmax")
        yield stop, float((_predicted(model, X_test) == y_test).mean())


def _ask(
    setup: Setup,
    X: NDArray[np.float32],
    asked: NDArray[np.int64],
    model: LinearModel | None,
    wanted: int,
    rng: SimulationRandom,
) -> NDArray[np.int64]:
    """Return the rows asked about until there are as many answers as wanted."""
    name = "random" if model is None else setup.selection
    while len(asked) < wanted:
        candidates = np.setdiff1d(np.arange(len(X)), asked)
        picks = min(setup.round_size, wanted - len(asked))
        strategy = strategy_for(name, scale=setup.scale, parameters=setup.parameters if name != "random" else {})
        found = strategy.query(X, candidates, model, picks, rng)
        if not len(found):
            found = strategy_for("random", scale=0.0).query(X, candidates, None, picks, rng)
        asked = np.concatenate([asked, found[: wanted - len(asked)]])
    return asked


def _trained(
    setup: Setup, X: NDArray[np.float32], y: NDArray[np.int64], prior: LinearModel | None, noise: np.random.Generator
) -> LinearModel:
    estimator = estimator_for(
        setup.estimator,
        setup.training,
        classes=list(range(setup.n_classes)),
        norm_bound=1.0,
        intercept_scaling=INTERCEPT_SCALING,
        prior=prior,
    )
    estimator.set_params(random_state=noise)
    if setup.stream:
        estimator.set_params(batch_size=min(setup.batch, max(1, len(X))))
    estimator.fit(X, y)
    names = tuple(str(number) for number in range(setup.n_classes))
    return LinearModel(
        estimator.coef_, estimator.intercept_, names, "softmax" if setup.estimator == "minibatch_svm" else "one_vs_rest"
    )


def _predicted(model: LinearModel, X: NDArray[np.float32]) -> NDArray[np.int64]:
    values = X @ model.coef.T + model.intercept
    chosen: NDArray[np.int64] = (values[:, 0] > 0).astype(np.int64) if len(model.coef) == 1 else values.argmax(axis=1)
    return chosen


def _pool(
    data: Data, setup: Setup, rng: np.random.Generator
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
    dimension = setup.simulated_dimension
    centres = rng.normal(size=(setup.n_classes, dimension))
    centres *= CENTRE_LENGTH / np.linalg.norm(centres, axis=1, keepdims=True)
    y = rng.integers(setup.n_classes, size=rows + TEST_ROWS)
    X = _clipped(centres[y] + rng.normal(size=(len(y), dimension)))
    return X[:rows], y[:rows], X[rows:], y[rows:]


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
