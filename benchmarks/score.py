"""Score, screen and choose among 1 M x 128 float32 rows, against the time to read them at copy bandwidth.

Run: python benchmarks/score.py [--rows N] [--dimension D] [--repeats R]

Limits: score and screen at most 1.5 times the reading time and 64 MiB of extra memory, top-c at most 2.5 times.
"""

import argparse
import json
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from learner.features.clipping import clip_rows
from learner.features.matrix import open_matrix, write_matrix
from learner.linear_model import LinearModel
from learner.strategies.random import RandomChoice
from learner.strategies.scoring import boundary_distances, score_blocks
from learner.strategies.top_c import TopC
from learner.strategies.uncertainty import Uncertainty
from privacy.mechanisms.randomness import SecureRandom
from privacy.mechanisms.screening import coin_probability, flip_two_rate_coins

PICKS = 1000
SCREEN_LIMIT, TOP_C_LIMIT, MEMORY_LIMIT_MIB = 1.5, 2.5, 64


def best_seconds(run: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several timings."""
    timings = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        timings.append(time.perf_counter() - start)
    return min(timings)


def extra_mebibytes(run: Callable[[], object]) -> float:
    """Return the peak of traced allocations, in MiB."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def screened(X: np.ndarray, candidates: np.ndarray, model: LinearModel) -> int:
    """Run the Bernoulli screen over all rows and return how many it shows."""
    high, low = coin_probability(0.02), coin_probability(0.005)
    rng = SecureRandom()
    shown = 0
    for values in score_blocks(X, model, candidates=candidates):
        informative = np.exp(-boundary_distances(values, model.coef)) >= 0.95
        shown += int(flip_two_rate_coins(informative, high=high, low=low, rng=rng).sum())
    return shown


def main() -> int:
    """Measure, print one JSON object, and return 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    model = LinearModel(rng.normal(size=(1, arguments.dimension)), np.zeros(1), ("no", "yes"))
    with tempfile.TemporaryDirectory() as folder:
        sizes = [len(part) for part in np.array_split(np.empty(arguments.rows), max(1, arguments.rows // 50_000))]
        blocks = (clip_rows(rng.normal(size=(size, arguments.dimension)), norm_bound=1.0) for size in sizes)
        X = open_matrix(write_matrix(Path(folder) / "x.npy", blocks, dimension=arguments.dimension).path)
        report = measure(X, model, arguments.repeats)
    print(json.dumps(report, indent=2))
    broken = (
        report["screen_ratio"] > SCREEN_LIMIT
        or report["top_c_ratio"] > TOP_C_LIMIT
        or max(report["screen_extra_mib"], report["top_c_extra_mib"]) > MEMORY_LIMIT_MIB
    )
    return int(broken)


def measure(X: np.ndarray, model: LinearModel, repeats: int) -> dict[str, float]:
    """Time every way to choose, and the copy that sets the scale."""
    candidates = np.arange(len(X))
    runs: dict[str, Callable[[], object]] = {
        "score": lambda: sum(len(values) for values in score_blocks(X, model, candidates=candidates)),
        "screen": lambda: screened(X, candidates, model),
        "top_c": lambda: TopC(0.25).query(X, candidates, model, PICKS, SecureRandom()),
        "uncertainty": lambda: Uncertainty().query(X, candidates, model, PICKS, SecureRandom()),
        "random": lambda: RandomChoice().query(X, candidates, None, PICKS, SecureRandom()),
    }
    target = np.empty_like(X)
    copy_seconds = best_seconds(lambda: np.copyto(target, X), repeats)
    report = {"rows": len(X), "gib": X.nbytes / 2**30, "copy_seconds": copy_seconds}
    for name, run in runs.items():
        seconds = best_seconds(run, repeats)
        report |= {f"{name}_seconds": seconds, f"{name}_ratio": seconds / copy_seconds}
        report[f"{name}_extra_mib"] = extra_mebibytes(run)
    return {name: round(float(value), 4) for name, value in report.items()}


if __name__ == "__main__":
    sys.exit(main())
