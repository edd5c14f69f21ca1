"""Fit rows privately beside scikit-learn's lbfgs on the same rows without privacy, and beside diffprivlib.

The first peer stops where the mean gradient is below 1e-4; ours certifies the norm of the summed gradient to 1e-6.
"""

import json
import math
import subprocess
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.speed.rows import DIMENSION, EPSILON, HELD_OUT, REGULARIZATION, rows_and_labels
from benchmarks.speed.timing import Line, best_seconds
from learner.estimators.logistic import PrivateLogisticRegression

LIMIT, LIMIT_FLOAT32, ACCURACY_LIMIT = 1.2, 0.7, 0.01
PEER_SCRIPT = Path(__file__).with_name("diffprivlib_peer.py")


def private(**options: object) -> PrivateLogisticRegression:
    """Return an unfitted estimator with secure noise."""
    return PrivateLogisticRegression(EPSILON, REGULARIZATION, classes=[0, 1], **options)


def fitting_lines(n: int, dimension: int, repeats: int) -> list[Line]:
    """Time every fit on the same rows; float32 is held against the peer on the same float32 rows."""
    X, y = rows_and_labels(n, dimension, seed=0)
    narrow = X.astype(np.float32)
    peer = LogisticRegression(C=1 / REGULARIZATION)
    took = best_seconds(
        {
            "peer": lambda: peer.fit(X, y),
            "peer_float32": lambda: peer.fit(narrow, y),
            "ours": lambda: private().fit(X, y),
            "ours_float32": lambda: private().fit(narrow, y),
            "ours_output": lambda: private(method="output").fit(X, y),
        },
        repeats,
    )
    size = f"{n:,} x {dimension}"
    peer.fit(X, y)
    theirs, ours = peer.score(X, y), private().fit(X, y).score(X, y)

    def line(what: str, name: str, against: str, limit: float | None) -> Line:
        return Line(f"{what}, {size}", took[name], took[against], took[name] / took[against], limit)

    return [
        line("private logistic regression / lbfgs", "ours", "peer", LIMIT),
        line("the same on float32", "ours_float32", "peer_float32", LIMIT_FLOAT32),
        line("the same by output perturbation", "ours_output", "peer", None),
        Line("accuracy on the same rows, with and without privacy", ours, theirs, ours - theirs, unit=""),
    ]


def accuracy_lines(seeds: int, peer_python: Path | None) -> list[Line]:
    """Return mean accuracies on held-out rows over seeds beside the peer's, where an environment has one."""
    accuracies, seconds = [], []
    for seed in range(seeds):
        X, y = rows_and_labels(2 * HELD_OUT, DIMENSION, seed)
        start = time.perf_counter()
        model = private().fit(X[:HELD_OUT], y[:HELD_OUT])
        seconds.append(time.perf_counter() - start)
        accuracies.append(model.score(X[HELD_OUT:], y[HELD_OUT:]))
    ours, took = float(np.mean(accuracies)), float(np.median(seconds))
    what = f"held-out accuracy, {seeds} seeds, {HELD_OUT:,} x {DIMENSION}"
    if peer_python is None:
        return [Line(f"{what} (no peer given)", ours, math.nan, math.nan, unit="")]
    done = subprocess.run(
        [peer_python, PEER_SCRIPT, str(seeds)], env={"PYTHONPATH": "."}, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    theirs = float(np.mean(found["accuracies"]))
    spread = float(np.std(np.array(accuracies) - np.array(found["accuracies"]), ddof=1) / math.sqrt(seeds))
    peer = f"diffprivlib {found['version']}"
    return [
        Line(f"{what}: {peer} less ours (± {spread:.4f})", ours, theirs, theirs - ours, ACCURACY_LIMIT, unit=""),
        Line(f"fitting time of one of these: / {peer}", took, found["seconds"], took / found["seconds"]),
    ]
