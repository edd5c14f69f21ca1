"""Learn and examine in bulk: 100 simulated runs of mini-batch descent beside a loop over them, records per second.

Run: python benchmarks/learning.py [--runs N] [--rows N] [--dimension D] [--repeats R]

Limits: all runs side by side at least 5 times as fast as one after another; a stream examined at 20,000 records a
second in blocks of ten or more. Scoring is in score.py, logistic regression beside its peers in logistic.py.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable

import numpy as np

from learner.estimators.mi_ogd import MutualInformationOGD
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM
from learner.estimators.simulated_runs import simulate_minibatch_runs
from learner.linear_model import LinearModel
from learner.policies import BatchState, FixedBatches, FixedWindows
from learner.strategies.bernoulli_screen import BernoulliScreen
from learner.strategies.exponential_screen import ExponentialScreen
from learner.strategies.screen import Screen
from learner.streaming import examine
from privacy.mechanisms.randomness import SecureRandom

LABELS, BATCH = 2_000, 50
SPEEDUP_LIMIT, RECORDS_LIMIT = 5.0, 20_000


def best_seconds(run: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several timings."""
    timings = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        timings.append(time.perf_counter() - start)
    return min(timings)


def unit_rows(rows: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of norm just under one and labels that follow their first column."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, dimension)).astype(np.float32)
    X *= 0.999 / np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X[:, 0] + 0.05 * rng.normal(size=rows) > 0).astype(int)


def simulated(X: np.ndarray, y: np.ndarray, runs: int, repeats: int) -> dict[str, float]:
    """Time runs side by side and one after another; both do the same arithmetic."""
    signs = np.where(y == 1, 1.0, -1.0)
    orders = np.stack([np.random.default_rng(run).permutation(len(X))[:LABELS] for run in range(runs)])
    options = {"batch_size": BATCH, "noise_scale": 0.5, "step_size": 4.0, "radius": 40.0}

    def together() -> None:
        simulate_minibatch_runs(X, signs, orders, rng=np.random.default_rng(0), **options)

    def one_by_one() -> None:
        for run in range(runs):
            simulate_minibatch_runs(X, signs, orders[run : run + 1], rng=np.random.default_rng(run), **options)

    ours, loop = best_seconds(together, repeats), best_seconds(one_by_one, repeats)
    return {"together_seconds": ours, "loop_seconds": loop, "speedup": loop / ours, "speedup_limit": SPEEDUP_LIMIT}


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


def main() -> int:
    """Measure, print one JSON object, and return 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=51)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    X, y = unit_rows(arguments.rows, arguments.dimension)
    report: dict[str, float] = simulated(X, y, arguments.runs, arguments.repeats)
    for block in (1, 10, 1_000):
        report[f"bernoulli_records_per_second_in_blocks_of_{block}"] = examined_per_second(
            X, BernoulliScreen(0.02, 0.005), block, hidden=False
        )
        report[f"exponential_hidden_records_per_second_in_blocks_of_{block}"] = examined_per_second(
            X, ExponentialScreen(), block, hidden=True
        )
    report["records_per_second_limit"] = RECORDS_LIMIT
    few = min(len(X), LABELS)
    report["minibatch_fit_seconds"] = best_seconds(
        lambda: MiniBatchPrivateSVM(2.0, classes=[0, 1]).fit(X[:few], y[:few]), 2
    )
    report["noisy_gradient_users_per_second"] = few / best_seconds(
        lambda: MutualInformationOGD(5.0, classes=[0, 1]).fit(X[:few], y[:few]), 2
    )
    print(json.dumps({name: round(float(value), 4) for name, value in report.items()}, indent=2))
    rates = [value for name, value in report.items() if name.endswith(("of_10", "of_1000"))]
    return int(report["speedup"] < SPEEDUP_LIMIT or min(rates) < RECORDS_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
