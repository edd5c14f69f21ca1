"""A curve of the KDD Cup experiment of Ghassemi et al., 50 seeds side by side, beside a loop over runs and records.

Run: python benchmarks/reproduce_streams.py [--data FOLDER] [--runs N] [--loop-runs N]

Limit: 50 seeds of 10,000 records, tested at 30 checkpoints, in under 60 seconds. Without a folder the rows are
generated in the same shape.
"""

import argparse
import math
import os
import sys
import time
from pathlib import Path

import numpy as np

from learner.papers.datasets import Sample, load_sample
from learner.papers.ghassemi_curves import paper_design, spaced, stream_orders
from learner.papers.stream_runs import Design, simulate_streams

LIMIT_SECONDS = 60.0
STEPS, SHAPE, TEST_ROWS = 10_000, (45_000, 120), 5_000


def generated() -> Sample:
    """Return rows of the unit sphere in the shape of the KDD Cup sample."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((SHAPE[0] + TEST_ROWS, SHAPE[1])).astype(np.float32)
    signs = np.where(rng.random(len(rows)) < 0.8, 1, -1).astype(np.float32)
    rows[:, 0] += 4 * signs
    rows *= 0.999 / np.linalg.norm(rows, axis=1, keepdims=True)
    return Sample(rows[TEST_ROWS:], signs[TEST_ROWS:], rows[:TEST_ROWS], signs[:TEST_ROWS])


def run_once(sample: Sample, order: np.ndarray, design: Design, wanted: set[int], rng: np.random.Generator) -> float:
    """Follow one stream record by record and return its last test error."""
    dimension, error = sample.X.shape[1], 0.5
    weights, batch, updates = np.zeros(dimension, dtype=np.float32), [], 0
    signed_tests = sample.test_rows * sample.test_signs[:, None]
    for step, row in enumerate(order, start=1):
        x = sample.X[row]
        distance = abs(float(weights @ x)) / (float(np.linalg.norm(weights)) or 1.0)
        if rng.random() < (design.high if distance <= design.reach else design.low):
            batch.append(row)
        if len(batch) == design.size:
            updates += 1
            signed = sample.X[batch] * sample.signs[batch, None]
            noise = rng.standard_normal(dimension)
            noise *= rng.gamma(dimension) * 2 / design.epsilon / np.linalg.norm(noise)
            sums = signed[signed @ weights < 1].sum(axis=0) + noise
            weights = weights - design.step / updates * (design.regularization * weights - sums / len(batch))
            weights = (weights * min(1.0, design.radius / float(np.linalg.norm(weights)))).astype(np.float32)
            batch = []
        if step in wanted:
            error = float((signed_tests @ weights < 0).mean())
    return error


def main() -> int:
    """Time both and say whether the limit holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--loop-runs", type=int, default=5)
    options = parser.parse_args()
    sample = load_sample("kdd", options.data) if options.data else generated()
    orders = stream_orders(sample, range(options.runs), STEPS)
    design, checkpoints = paper_design(), spaced(STEPS)

    started = time.perf_counter()
    runs = simulate_streams(sample, [design], orders, checkpoints, seed=1)
    ours = time.perf_counter() - started

    rng = np.random.default_rng(2)
    started = time.perf_counter()
    errors = [run_once(sample, order, design, set(checkpoints), rng) for order in orders[: options.loop_runs]]
    loop = (time.perf_counter() - started) / options.loop_runs * options.runs

    last = runs.errors[0, :, -1]
    print(
        f"load {os.getloadavg()[0]:.1f}; {options.runs} seeds, {STEPS:,} records, {len(checkpoints)} checkpoints, FLMB"
    )
    print(f"ours  {ours:8.2f} s, last error {last.mean():.3f} +- {last.std(ddof=1) / math.sqrt(len(last)):.3f}")
    print(f"loop  {loop:8.2f} s from {options.loop_runs} runs, last error {np.mean(errors):.3f}")
    print(f"ratio {loop / ours:8.1f}; limit {LIMIT_SECONDS:g} s: {'kept' if ours < LIMIT_SECONDS else 'MISSED'}")
    return int(ours >= LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
