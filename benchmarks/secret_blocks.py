"""What the preset for experts gives with each estimator: test error after every secret block, at the same epsilon.

Run: python -m benchmarks.secret_blocks [--data DIR] [--pools N ...] [--seeds N] [--out FILE.json]

Data and features are those of recipes.py. The blocks are drawn, charged and regularised towards the release before as a
live project does it; a training costs what the preset ships, with which its blocks spend all of its limit, those with
Gaussian noise delta beside epsilon. All of it is a simulation: seeded noise, known labels.
"""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from annotation.choices.presets import PRESETS
from benchmarks.trials.tasks import Task, digits_task, kdd_task, mnist_task
from learner.estimators.catalogue import CHOICES
from learner.estimators.choice import INTERCEPT_SCALING, EstimatorChoice, Shape
from learner.linear_model import LinearModel
from learner.strategies.blocks import draw_blocks
from learner.strategies.secret_blocks import SecretBlocks
from privacy.accounting.events import SecretBlockEvent
from privacy.mechanisms.randomness import SimulationRandom

PRESET = PRESETS["pool-experts"].defaults
EPSILON, DELTA = PRESET["training_epsilon"], PRESET["training_delta"]
RATES = SecretBlocks(PRESET["selection_rate"]).block_rates
PULL, BEND = (PRESET[name] for name in ("regularization", "smoothing"))
CANDIDATES = {
    "logistic": {"regularization": PULL},
    "logistic_gaussian": {"regularization": PULL},
    "huber_svm": {"regularization": PULL, "smoothing": BEND},
    "huber_svm_gaussian": {"regularization": PULL, "smoothing": BEND},
}


def errors_of(task: Task, name: str, *, pool: int, seed: int) -> tuple[list[float], float]:
    """Return the test error after each block, and the epsilon of all releases together."""
    chosen = np.random.default_rng(seed).permutation(len(task.X))[:pool]
    blocks = draw_blocks(pool, RATES, SimulationRandom(seed))
    found = next(choice for choice in CHOICES if choice.name == name)
    assert issubclass(found, EstimatorChoice)
    choice = found.of({"training_epsilon": EPSILON, "training_delta": DELTA, **CANDIDATES[name]})
    prior, errors, spent, charge = None, [], [], None
    for number in range(1, len(RATES) + 1):
        rows = chosen[blocks == number]
        shape = Shape([0, 1], norm_bound=1.0, intercept_scaling=INTERCEPT_SCALING, prior=prior)
        estimator = choice.estimator(shape).set_params(random_state=100 * seed + number)
        estimator.fit(task.X[rows], task.y[rows])
        prior = LinearModel(estimator.coef_, estimator.intercept_, ("no", "yes"))
        predicted = (prior.decision_function(task.test_rows) > 0).astype(int)
        errors.append(float((predicted != task.test_labels).mean()))
        charge = SecretBlockEvent.next_of(charge, estimator.privacy_event_, block=number, rates=RATES)
        spent.append(charge.cost().epsilon)
    return errors, math.fsum(spent)


def measure(task: Task, *, pools: list[int], seeds: int) -> dict[str, Any]:
    """Return mean and standard error in % of every estimator for every size of pool that the data has."""
    table: dict[str, Any] = {}
    for pool in (pool for pool in pools if pool <= len(task.X)):
        for name in CANDIDATES:
            runs = [errors_of(task, name, pool=pool, seed=seed) for seed in range(seeds)]
            errors = 100 * np.array([run[0] for run in runs])
            row = {
                "error": errors.mean(axis=0).round(2).tolist(),
                "standard_error": (errors.std(axis=0, ddof=1) / math.sqrt(seeds)).round(2).tolist(),
                "epsilon": round(max(run[1] for run in runs), 6),
            }
            table.setdefault(str(pool), {})[name] = row
            shown = "  ".join(f"{m:5.2f} ±{s:.2f}" for m, s in zip(row["error"], row["standard_error"], strict=True))
            print(f"{task.name:10} pool {pool:6,}  {name:20} {shown}  epsilon {row['epsilon']:.3f}", flush=True)
    return table


def main() -> int:
    """Print the tables; return 1 if the preset's estimator lost to the one with the plain tilt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--pools", type=int, nargs="+", default=[1_000, 5_000])
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    tasks = [mnist_task(arguments.data), kdd_task(arguments.data)] if arguments.data else []
    tasks.append(digits_task())
    report = {task.name: measure(task, pools=arguments.pools, seeds=arguments.seeds) for task in tasks}
    if arguments.out:
        settings = {"epsilon": EPSILON, "delta": DELTA, "rates": RATES, "seeds": arguments.seeds}
        arguments.out.write_text(json.dumps({"settings": settings, "tasks": report}, indent=1) + "\n")
    cells = [pool for table in report.values() for pool in table.values()]
    lost = sum(cell["huber_svm_gaussian"]["error"][-1] > cell["logistic"]["error"][-1] for cell in cells)
    return int(2 * lost > len(cells))


if __name__ == "__main__":
    sys.exit(main())
