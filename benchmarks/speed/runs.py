"""Learn and examine in bulk: simulated runs side by side beside a loop, records per second through screens."""

import time

import numpy as np

from annotation.choices.policies.fixed_batches import FixedBatches
from annotation.choices.policies.updates import BatchState
from annotation.choices.policies.windows import FixedWindows
from benchmarks.speed.timing import Line, best_seconds
from learner.estimators.mi_ogd import MutualInformationOGD
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM
from learner.estimators.simulated_runs import simulate_minibatch_runs
from learner.linear_model import LinearModel
from learner.pools.streaming import examine
from learner.strategies.bernoulli_screen import BernoulliScreen
from learner.strategies.exponential_screen import ExponentialScreen
from learner.strategies.screen import Screen
from privacy.mechanisms.randomness import SecureRandom

LABELS, BATCH = 2_000, 50
POOL, DIMENSION = 100_000, 51
SPEEDUP_LIMIT, RECORDS_LIMIT = 5.0, 20_000


def unit_rows(rows: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of norm just under one and labels that follow their first column."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, dimension)).astype(np.float32)
    X *= 0.999 / np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X[:, 0] + 0.05 * rng.normal(size=rows) > 0).astype(int)


def run_lines(runs: int, repeats: int) -> list[Line]:
    """Time runs side by side and one after another, and what goes through a screen and a learner in a second."""
    X, y = unit_rows(POOL, DIMENSION)
    lines = [simulated(X, y, runs, repeats)]
    for block in (1, 10, 1_000):
        limit = 1.0 if block > 1 else None
        for name, screen, hidden in (
            ("Bernoulli screen", BernoulliScreen(0.02, 0.005), False),
            ("exponential screen, hidden", ExponentialScreen(), True),
        ):
            rate = examined_per_second(X, screen, block, hidden=hidden)
            what = f"{name}, blocks of {block:,} / {RECORDS_LIMIT:,} a second"
            lines.append(Line(what, rate, RECORDS_LIMIT, rate / RECORDS_LIMIT, limit, at_least=True, unit="records/s"))
    few = min(len(X), LABELS)
    took = best_seconds(
        {
            "noisy batches": lambda: MiniBatchPrivateSVM(2.0, classes=[0, 1]).fit(X[:few], y[:few]),
            "noisy gradients": lambda: MutualInformationOGD(5.0, classes=[0, 1]).fit(X[:few], y[:few]),
        },
        2,
    )
    nan = float("nan")
    return lines + [
        Line(f"labels learned by {name}, exact noise", few / seconds, nan, nan, unit="labels/s")
        for name, seconds in took.items()
    ]


def simulated(X: np.ndarray, y: np.ndarray, runs: int, repeats: int) -> Line:
    """Hold runs side by side against a loop; both do the same arithmetic."""
    signs = np.where(y == 1, 1.0, -1.0)
    orders = np.stack([np.random.default_rng(run).permutation(len(X))[:LABELS] for run in range(runs)])
    options = {"batch_size": BATCH, "noise_scale": 0.5, "step_size": 4.0, "radius": 40.0}

    def together() -> None:
        simulate_minibatch_runs(X, signs, orders, rng=np.random.default_rng(0), **options)

    def one_by_one() -> None:
        for run in range(runs):
            simulate_minibatch_runs(X, signs, orders[run : run + 1], rng=np.random.default_rng(run), **options)

    took = best_seconds({"together": together, "loop": one_by_one}, repeats)
    what = f"{runs} simulated runs of mini-batch descent: loop / together"
    return Line(what, took["together"], took["loop"], took["loop"] / took["together"], SPEEDUP_LIMIT, at_least=True)


def examined_per_second(X: np.ndarray, screen: Screen, block: int, *, hidden: bool) -> float:
    """Return how many records a second go through a screen in blocks of `block`, with release randomness."""
    policy = FixedWindows(200, denominator=20) if hidden else FixedBatches(BATCH)
    model = LinearModel(np.ones((1, X.shape[1])), np.zeros(1), ("no", "yes"))
    state, rng = BatchState(), SecureRandom()
    count = min(len(X), 2_000 * block)
    start = time.perf_counter()
    for slot in range(0, count, block):
        done = examine(
            X[slot : slot + block],
            first_slot=slot,
            state=state,
            examiner=screen,
            policy=policy,
            model=model,
            rng=rng,
        )
        state = done.state
    return count / (time.perf_counter() - start)
