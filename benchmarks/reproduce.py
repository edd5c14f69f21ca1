"""The 120-point experiment of Rane and Brito, all runs side by side, beside a loop over runs.

Run: python benchmarks/reproduce.py [--runs N] [--loop-runs N]

Limit: 5,000 runs of the experiment, with its noise, in under 60 seconds. The loop trains each run's machines with
scikit-learn's dual solver, as one would without batching.
"""

import argparse
import os
import sys
import time

import numpy as np
from sklearn.svm import SVC

from learner.papers.plane_learners import coin, draw_starts
from learner.papers.plane_points import Constellation
from learner.papers.rane2019 import Separation, constellation, learn, released_accuracy

LIMIT_SECONDS = 60.0


def machine(rows: np.ndarray, cost: float) -> np.ndarray:
    """Return the machine through the origin: every point also mirrored, which makes the offset of a solver zero."""
    signs = np.repeat([1, -1], len(rows))
    solver = SVC(kernel="linear", C=cost / 2, tol=1e-6).fit(np.vstack([rows, -rows]), signs)
    return solver.coef_[0]


def run_once(points: Constellation, start: np.ndarray, probability: float, rng: np.random.Generator) -> int:
    """Return the label complexity of one run."""
    signed, labelled = points.signed, list(start)
    while len(labelled) < len(signed):
        weights = machine(signed[labelled], 1.0)
        if (signed @ weights > 0).all():
            break
        distances = np.abs(points.X @ weights)
        distances[labelled] = np.inf
        rank = (rng.geometric(probability) - 1) % (len(signed) - len(labelled))
        labelled.append(int(np.argsort(distances)[rank]))
    return len(labelled) - 2


def main() -> int:
    """Time both and say whether the limit holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5_000)
    parser.add_argument("--loop-runs", type=int, default=100)
    options = parser.parse_args()
    settings = Separation(small=False).settings
    points = constellation(settings, settings["gaps"]["narrow"])

    started = time.perf_counter()
    learned = learn(points, settings, options.runs, "epsilon_p 1", seed=1)
    for place, epsilon in enumerate(settings["epsilons_m"]):
        released_accuracy(points, learned, "published", epsilon, settings["cost"], np.random.default_rng(place))
    ours = time.perf_counter() - started

    rng, starts = np.random.default_rng(2), draw_starts(points.signs, options.loop_runs, np.random.default_rng(1))
    started = time.perf_counter()
    queries = [run_once(points, start, coin(1.0), rng) for start in starts]
    loop = (time.perf_counter() - started) / options.loop_runs * options.runs

    print(f"load {os.getloadavg()[0]:.1f}; {options.runs} runs, narrow data, epsilon_p 1, four values of epsilon_m")
    print(f"ours  {ours:8.2f} s, median label complexity {np.median(learned.queries):g}")
    print(f"loop  {loop:8.2f} s from {options.loop_runs} runs, median label complexity {np.median(queries):g}")
    print(f"ratio {loop / ours:8.1f}; limit {LIMIT_SECONDS:g} s: {'kept' if ours < LIMIT_SECONDS else 'MISSED'}")
    return int(ours >= LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
