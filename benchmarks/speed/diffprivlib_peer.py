"""The peer's accuracies and fitting time as JSON; run by an environment that has diffprivlib 0.6.6 and nothing of ours.

Run: PYTHONPATH=. PEER_PYTHON benchmarks/speed/diffprivlib_peer.py SEEDS
"""

import json
import sys
import time
import warnings

import diffprivlib
import numpy as np
from diffprivlib.models import LogisticRegression

from benchmarks.speed.rows import DIMENSION, EPSILON, HELD_OUT, REGULARIZATION, rows_and_labels


def main() -> None:
    """Fit once for each seed."""
    accuracies, seconds = [], []
    for seed in range(int(sys.argv[1])):
        X, y = rows_and_labels(2 * HELD_OUT, DIMENSION, seed)
        model = LogisticRegression(epsilon=EPSILON, data_norm=1.0, C=1 / REGULARIZATION, random_state=seed)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[:HELD_OUT], y[:HELD_OUT])
        seconds.append(time.perf_counter() - start)
        accuracies.append(model.score(X[HELD_OUT:], y[HELD_OUT:]))
    found = {"version": diffprivlib.__version__, "accuracies": accuracies, "seconds": float(np.median(seconds))}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
