"""Whether probabilities of models from noisy sums mean what they say, beside the same scores as they come and a peer.

Run: python -m benchmarks.calibration --data DIR [--tasks NAME ...] [--seeds N] [--epsilon E] [--out FILE.json]

DIR holds the public tasks of `benchmarks.utility`. A secret sample is learned from as the preset for experts ships: a
static encoder, one release of noisy sums of epsilon, delta 5e-6. Its temperature is chosen from the sums alone, which
costs nothing more. Beside it stand the scores of the same release without a temperature, with the temperature that
fits the test set best (which nobody may choose by), and the peer: scikit-learn's logistic regression on the same labels
without privacy. Calibration error is expected over ten bins; log loss is a mean over the examples. Seeded noise.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from benchmarks.trials.baselines import sample_of
from benchmarks.trials.public_tasks import TASKS
from learner.estimators import sums
from learner.estimators.sum_models import TEMPERATURES
from learner.releases.evaluation import calibration_error, count_outcomes
from learner.simulation.task import SimulationTask
from learner.simulation.trusted import encoded_records, settings_of

DELTA = 5e-6
SHOWN = ["SMS spam", "ten digits", "CLINC 10", "CLINC 77"]
Matrix = NDArray[np.float64]


@contextmanager
def without_temperature() -> Iterator[None]:
    """Leave scores as the model gives them."""
    kept = sums.calibrated
    sums.calibrated = lambda scores, *_: scores
    try:
        yield
    finally:
        sums.calibrated = kept


def scores_of(
    task: SimulationTask, rows: Matrix, test: Matrix, labels: int, *, epsilon: float, seed: int
) -> dict[str, Matrix]:
    """Return log-probabilities of the test rows, shape (n, n_classes), by how they were made."""
    chosen = sample_of(task, labels, seed)
    classes = list(range(len(task.classes)))

    def fitted() -> sums.PrivateSums:
        model = sums.PrivateSums(epsilon, delta=DELTA, classes=classes, random_state=seed)
        return model.fit(rows[chosen], task.labels[chosen])

    def whole(values: Matrix) -> Matrix:
        return np.stack([-values / 2, values / 2], axis=1) if values.ndim == 1 else values

    released = whole(fitted().decision_function(test))
    with without_temperature():
        plain = whole(fitted().decision_function(test))
    best = min(TEMPERATURES, key=lambda one: log_loss(log_softmax(released * one, axis=1), task.test_labels))
    peer = LogisticRegression(C=10.0, max_iter=300).fit(rows[chosen], task.labels[chosen])
    learned = np.full((len(test), len(classes)), -np.inf)
    learned[:, peer.classes_] = peer.predict_log_proba(test)
    return {
        "released": log_softmax(released, axis=1),
        "no temperature": log_softmax(plain, axis=1),
        "best temperature": log_softmax(released * best, axis=1),
        "no privacy": learned,
    }


def log_loss(values: Matrix, truth: NDArray[np.int64]) -> float:
    """Return the mean surprise; what was thought impossible counts as one in a million."""
    return float(-np.maximum(values[np.arange(len(truth)), truth], np.log(1e-6)).mean())


def judged(values: Matrix, truth: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return accuracy, calibration error and log loss."""
    leaders = values.argmax(axis=1)
    counts = count_outcomes(np.exp(values), leaders, truth)
    error = float(calibration_error(counts.hits, counts.misses, counts))
    return float((leaders == truth).mean()), error, log_loss(values, truth)


def measured(task: SimulationTask, labels: int, *, epsilon: float, seeds: int) -> dict[str, Any]:
    """Return means and standard errors over seeds, by how the probabilities were made."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    rows, test = encoded_records(task, settings_of(task))
    for seed in range(seeds):
        for name, values in scores_of(task, rows, test, labels, epsilon=epsilon, seed=seed).items():
            found.setdefault(name, []).append(judged(values, task.test_labels))
    report = {}
    for name, each in found.items():
        table = np.array(each)
        means, errors = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(seeds)
        report[name] = {
            measure: [round(float(mean), 4), round(float(error), 4)]
            for measure, mean, error in zip(("accuracy", "calibration_error", "log_loss"), means, errors, strict=True)
        }
    return report


def lines_of(name: str, labels: int, found: dict[str, Any]) -> list[str]:
    """Return one row of a table for each way."""
    return [
        f"| {name}, {labels} | {way} | "
        + " | ".join(f"{mean:.3f} ± {2 * error:.3f}" for mean, error in measures.values())
        + " |"
        for way, measures in found.items()
    ]


def main() -> int:
    """Print the table; return 1 where released probabilities surely tell less than scores without a temperature."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--tasks", nargs="+", choices=list(TASKS), default=["SMS spam", "CLINC 10", "CLINC 77", "ten digits"]
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    report: dict[str, Any] = {"seeds": arguments.seeds, "epsilon": arguments.epsilon, "tasks": {}}
    print("| task, labels | probabilities | accuracy | calibration error | log loss |\n|---|---|---|---|---|")
    missed = []
    for name in arguments.tasks:
        with tempfile.TemporaryDirectory() as folder:
            task = TASKS[name].task(Path(folder), arguments.data, seeds=arguments.seeds)
        for labels in task.label_counts:
            found = measured(task, labels, epsilon=arguments.epsilon, seeds=arguments.seeds)
            report["tasks"].setdefault(name, {})[labels] = found
            print("\n".join(lines_of(name, labels, found)), flush=True)
            (ours, error), (plain, beside) = (found[way]["log_loss"] for way in ("released", "no temperature"))
            if ours - plain > 2 * (error + beside):
                missed.append(f"{name}, {labels} labels: log loss {ours}, without temperature {plain}")
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")
    print("\n".join(missed), file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
