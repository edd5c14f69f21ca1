"""Test error against labels at equal epsilon and delta: what each preset gives for the same promise.

Run: python benchmarks/recipes.py [--data DIR] [--seeds N] [--epsilon E] [--labels 100 200 ...] [--only KEY ...]
    [--out DIR]

With --data, the folder holds `mnist_0_9.npz` (arrays X_train, y_train, X_test, y_test) and `kddcup.data_10_percent.gz`;
without, scikit-learn's digits below five are told from the others. Every number is a simulation: seeded noise, known
labels. Each recipe is charged by the events of the ledger, and none may exceed the epsilon asked for. --out writes
`recipes.json` and the same tables as `recipes.md`.
"""

import argparse
import datetime
import json
import math
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from benchmarks.trials import presets, recipes
from benchmarks.trials.recipes import FITTING, Recipe, outcome, released
from benchmarks.trials.tasks import Task, digits_task, kdd_task, mnist_task
from learner.estimators.baseline import LogisticRegressionBaseline


@dataclass(frozen=True)
class Row:
    """One line of the tables: a preset, or something to hold presets against."""

    key: str
    title: str
    recipe: Recipe
    preset: str = ""
    # Where every record is asked about, the whole pool is a column of its own.
    whole_pool: bool = False


ROWS = (
    Row("voice-crowd", "uncertainty by entropy, three releases", presets.voice_crowd, "voice-crowd"),
    Row("voice-crowd-random", "random, three releases", presets.voice_crowd_random),
    Row("pool-experts", "secret blocks q, q, 2q, three releases", presets.pool_experts, "pool-experts"),
    Row("secret-sample", "one secret sample, one release", recipes.secret_sample, "pool-experts"),
    Row("fraud-stream", "visible screen, batches of 50", presets.fraud_stream, "fraud-stream"),
    Row("fraud-stream-hidden", "hidden screen, fixed windows", presets.fraud_stream_hidden, "fraud-stream"),
    Row("fraud-stream-random", "visible random, batches of 50", presets.fraud_stream_random),
    Row("confirm-or-reject", "bandit descent", presets.confirm_or_reject, "confirm-or-reject", whole_pool=True),
    Row(
        "full-information-ogd",
        "full-information descent",
        presets.full_information_ogd,
        "full-information-ogd",
        whole_pool=True,
    ),
    Row("random", "random choice, objective perturbation", recipes.visible_random),
    Row("screened-secret-half", "secret half, then screened secret half", recipes.screened_secret_half),
    Row("principal-directions", "30 private directions, then a secret sample", recipes.principal_secret_sample),
    Row("top-c", "top-c in two stages", recipes.top_c),
    Row("minibatch", "descent on random batches of 50", recipes.minibatch),
    Row("paper-flmb", "batches of 5 in a unit ball, noise for replacement", presets.paper_stream),
    Row("random-no-privacy", "random, no privacy", recipes.random_without_privacy),
)
ALL_LABELS = "all-labels-no-privacy"


def cell(task: Task, recipe: Recipe, labels: int, seeds: int, epsilon: float) -> dict[str, float | None]:
    """Return mean and standard error of the test error over seeds, labels used and the largest price."""
    outcomes = [recipe(task, labels, epsilon, seed) for seed in range(seeds)]
    errors = np.array([done.error for done in outcomes])
    price = max(done.epsilon for done in outcomes)
    return {
        "error": round(float(errors.mean()), 5),
        "standard_error": round(float(errors.std(ddof=1) / math.sqrt(seeds)), 5) if seeds > 1 else 0.0,
        "labels": round(float(np.mean([done.labels for done in outcomes])), 1),
        "epsilon": price if math.isfinite(price) else None,
    }


def compared(task: Task, rows: Sequence[Row], counts: Sequence[int], seeds: int, epsilon: float) -> dict[str, Any]:
    """Return the table of one pool: a row of cells for each recipe."""
    table: dict[str, Any] = {}
    for row in rows:
        wanted = [count for count in counts if count <= len(task.X) // 2] + [len(task.X)] * row.whole_pool
        cells = {str(count): cell(task, row.recipe, count, seeds, epsilon) for count in wanted}
        table[row.key] = {"title": row.title, "preset": row.preset, "cells": cells}
    whole = LogisticRegressionBaseline(FITTING["regularization"], intercept_scaling=FITTING["intercept_scaling"])
    error = outcome(task, released(whole.fit(task.X, task.y)), len(task.X), []).error
    everything = {"error": round(error, 5), "standard_error": 0.0, "labels": len(task.X), "epsilon": None}
    table[ALL_LABELS] = {"title": "all labels, no privacy", "preset": "", "cells": {str(len(task.X)): everything}}
    return {
        "pool": len(task.X),
        "test": len(task.test_rows),
        "columns": task.X.shape[1],
        "positive_share": round(float(task.test_labels.mean()), 4),
        "recipes": table,
    }


def lines_of(name: str, found: dict[str, Any]) -> list[str]:
    """Return one pool's table as Markdown."""
    counts = sorted({int(count) for row in found["recipes"].values() for count in row["cells"]})
    lines = [
        f"## {name}",
        "",
        f"Pool of {found['pool']:,}, test set of {found['test']:,}, {found['columns']} columns; always answering with "
        f"the larger class errs {100 * min(found['positive_share'], 1 - found['positive_share']):.1f} %.",
        "",
        "| preset | recipe | " + " | ".join(f"{count:,}" for count in counts) + " |",
        "|---|---|" + "---:|" * len(counts),
    ]
    for row in found["recipes"].values():
        cells = [row["cells"].get(str(count)) for count in counts]
        shown = [f"{100 * one['error']:.2f} ± {100 * one['standard_error']:.2f}" if one else "" for one in cells]
        lines.append(f"| {row['preset']} | {row['title']} | " + " | ".join(shown) + " |")
    return [*lines, ""]


def markdown(report: dict[str, Any]) -> str:
    """Return all tables with the settings they were made under."""
    made = report["settings"]
    lines = [
        "# Test error against labels",
        "",
        f"Made by `benchmarks/recipes.py` on {made['date']}: {made['seeds']} seeds, total epsilon {made['epsilon']:g}, "
        f"one record replaced by a dummy; descent by Gaussian noise states its epsilon at delta {made['delta']:g}, all "
        "else has delta 0.",
        "Mean test error in % and its standard error against labels. Simulation: seeded noise, known labels, one "
        "annotator who is always right.",
        f"numpy {made['numpy']}, scikit-learn {made['scikit_learn']}, Python {made['python']}.",
        "",
    ]
    for name, found in report["tasks"].items():
        lines += lines_of(name, found)
    return "\n".join(lines)


def settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the numbers depend on."""
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "seeds": arguments.seeds,
        "epsilon": arguments.epsilon,
        "delta": presets.DELTA,
        "adjacency": "null",
        "labels": arguments.labels,
        "regularization": FITTING["regularization"],
        "numpy": np.__version__,
        "scikit_learn": sklearn.__version__,
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def broken_promises(report: dict[str, Any]) -> list[str]:
    """Name recipes that cost more than allowed, and defaults that lost to visible random choice."""
    broken = []
    for name, found in report["tasks"].items():
        rows = found["recipes"]
        for key, row in rows.items():
            prices = [one["epsilon"] for one in row["cells"].values() if one["epsilon"] is not None]
            if prices and max(prices) > report["settings"]["epsilon"]:
                broken.append(f"{name}: {key} cost {max(prices)}")
        if {"secret-sample", "random"} <= rows.keys():
            ours, visible = (
                sum(one["error"] for one in rows[key]["cells"].values()) for key in ("secret-sample", "random")
            )
            if ours > visible:
                broken.append(f"{name}: the secret sample lost to visible random choice")
    return broken


def main() -> int:
    """Print the tables; return 1 if a recipe cost more than was allowed or the default lost to its visible twin."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--labels", type=int, nargs="+", default=[100, 200, 500, 1_000, 2_000])
    parser.add_argument("--only", nargs="+", choices=[row.key for row in ROWS], default=[row.key for row in ROWS])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = [row for row in ROWS if row.key in arguments.only]
    tasks = [mnist_task(arguments.data), kdd_task(arguments.data)] if arguments.data else [digits_task()]
    report: dict[str, Any] = {"settings": settings(arguments), "tasks": {}}
    for task in tasks:
        found = compared(task, rows, arguments.labels, arguments.seeds, arguments.epsilon)
        report["tasks"][task.name] = found
        print("\n".join(lines_of(task.name, found)), flush=True)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "recipes.json").write_text(json.dumps(report, indent=1) + "\n")
        (arguments.out / "recipes.md").write_text(markdown(report))
    broken = broken_promises(report)
    print("\n".join(broken), file=sys.stderr)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
