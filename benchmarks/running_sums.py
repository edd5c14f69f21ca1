"""What running sums are worth: accuracy after every secret block of the preset for experts, at the same price.

Run: python -m benchmarks.running_sums --data DIR [--only TASK ...] [--seeds N]

Blocks, prices and the estimator are those of a live project with more than two classes. Every release is made of
the noisy sums of all blocks so far, of its own block's alone, drawn to the model before, or by gradient steps from
that model, as the preset does it. Simulations: seeded noise, known labels.
"""

import argparse
import math
import tempfile
from pathlib import Path

import numpy as np

from annotation.choices.presets import PRESETS
from benchmarks.trials.public_tasks import TASKS
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.estimators.sums import PrivateSums
from learner.linear_model import LinearModel
from learner.simulation.task import SimulationTask
from learner.simulation.trusted import encoded_records, settings_of
from learner.strategies.blocks import block_rates, draw_blocks
from privacy.accounting.events import SecretBlockEvent
from privacy.mechanisms.randomness import SimulationRandom

ALL, OWN, STEPS = "all blocks", "own block", "gradient steps"
DEFAULTS = PRESETS["pool-experts"].defaults


def course(
    task: SimulationTask, rows: np.ndarray, test: np.ndarray, seed: int, *, way: str
) -> tuple[list[float], float]:
    """Return the accuracy after each block, and the epsilon of all of them."""
    rates = block_rates(DEFAULTS["selection_rate"])
    blocks = draw_blocks(len(rows), DEFAULTS["selection_rate"], SimulationRandom(seed))
    sums, prior, charge, found, spent = None, None, None, [], []
    for block in range(1, len(rates) + 1):
        shape = {
            "delta": DEFAULTS["training_delta"],
            "classes": range(len(task.classes)),
            "prior": None if way == ALL else prior,
            "random_state": SimulationRandom(1_000 * seed + block),
        }
        estimator: PrivateSums | PrivateSoftmaxSteps
        if way == STEPS:
            estimator = PrivateSoftmaxSteps(DEFAULTS["training_epsilon"], **shape)
        else:
            estimator = PrivateSums(DEFAULTS["training_epsilon"], earlier=sums if way == ALL else None, **shape)
        estimator.fit(rows[blocks == block], task.labels[blocks == block])
        sums = estimator.sums_ if isinstance(estimator, PrivateSums) else None
        prior = LinearModel(estimator.coef_, estimator.intercept_, task.classes, "softmax")
        charge = SecretBlockEvent.next_of(charge, estimator.privacy_event_, block=block, rates=rates)
        spent.append(charge.cost().epsilon)
        found.append(float(np.mean(estimator.predict(test) == task.test_labels)))
    return found, math.fsum(spent)


def main() -> None:
    """Print one line for each task and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=["ten digits", "CLINC 10", "CLINC 50"])
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.data is None:
        arguments.only = ["ten digits"]
    for name in arguments.only:
        with tempfile.TemporaryDirectory() as folder:
            task = TASKS[name].task(Path(folder), arguments.data or Path(), seeds=1)
        rows, test = encoded_records(task, settings_of(task))
        for way in (ALL, OWN, STEPS):
            runs = [course(task, rows, test, seed, way=way) for seed in range(arguments.seeds)]
            reached = np.array([run[0] for run in runs])
            errors = reached.std(axis=0, ddof=1) / math.sqrt(arguments.seeds)
            shown = "  ".join(
                f"{mean:.3f} ±{error:.3f}" for mean, error in zip(reached.mean(axis=0), errors, strict=True)
            )
            print(f"{name:12} {len(rows):6,} records  {way:14}  {shown}  epsilon {runs[0][1]:.3f}", flush=True)


if __name__ == "__main__":
    main()
