"""Shares of classes and thresholds to abstain by: errors and coverage, beside labels alone and the model alone.

Run: python -m benchmarks.shares --data DIR [--runs 1000] [--out FILE.md]

DIR holds the files of `benchmarks.utility`. Noise is seeded: a simulation, without any guarantee.
"""

import argparse
import datetime
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

TASKS = {"SLURP-18": "SLURP 18, ten examples", "SMS": "SMS spam, described", "CLINC-50": "CLINC 50"}
EPSILONS, LABELS = (0.5, 1.0, 2.0), (180, 600, 1500)
# What must hold at the last epsilon and the second number of labels.
EPSILON, N_LABELS, SMALLER, COVERED = 2.0, 600, 0.3, 0.93
# What a threshold must keep at this epsilon and number of labels.
ABSTAIN_EPSILON, ABSTAIN_LABELS, ABSTAIN_PRECISION, KEPT, ABSTAIN_RUNS = 0.5, 300, 0.95, 0.95, 200
ALONE, BOTH, MODEL, OPEN = "labels alone", "labels with model", "model alone", "no privacy"
COMMAND = "python -m benchmarks.shares --data DIR"


class Task(NamedTuple):
    """Labels and predictions of a pool."""

    name: str
    labels: NDArray[np.int64]
    predicted: NDArray[np.int64]
    n_classes: int
    probabilities: NDArray[np.float64]


class Cell(NamedTuple):
    """Mean error in points, and part of the intervals that hold the share, of each estimate."""

    task: str
    epsilon: float
    labels: int
    errors: dict[str, float]
    covered: dict[str, float]
    helps: bool

    @property
    def smaller(self) -> float:
        """How much smaller the error with the model is than that of labels alone."""
        return 1 - self.errors[BOTH] / self.errors[ALONE]


def tasks(data: Path) -> list[Task]:
    """Return pools with the predictions of version 0, which is made of words about classes and costs no epsilon."""
    from benchmarks.trials.public_tasks import TASKS as PUBLIC
    from learner.estimators.version_zero import version_zero
    from learner.features.encoder import SentenceEncoder
    from learner.features.static_encoder import StaticEncoder

    found = []
    for name, public in TASKS.items():
        with tempfile.TemporaryDirectory() as folder:
            task = PUBLIC[public].task(Path(folder), data, seeds=1)
        encoder = StaticEncoder(n_features=256) if len(task.classes) == 2 else SentenceEncoder(n_features=256)
        model = version_zero(task.classes, task.descriptions, encoder.transform)
        values = model.decision_function(encoder.transform(list(task.texts)))
        predicted = np.asarray(model.leaders(values), dtype=np.int64)
        found.append(Task(name, task.labels, predicted, len(task.classes), model.probabilities(values)))
    return found


def measured(task: Task, *, epsilon: float, labels: int, runs: int) -> Cell:
    """Return the mean over `runs` draws of sample and noise."""
    from learner.estimators import class_shares as shares
    from privacy.accounting.counts import class_counts_event
    from privacy.accounting.screens import inner_epsilon
    from privacy.mechanisms import shares as counts
    from privacy.mechanisms.randomness import SimulationRandom
    from privacy.mechanisms.session import Measurement, MeasuringSession

    n, k = len(task.labels), task.n_classes
    rate = labels / n
    plan = shares.SharesPlan(n, rate, k)
    pool_epsilon, inside = plan.split(epsilon)
    events = {
        "pool": class_counts_event(pool_epsilon, cells=k, counted=1),
        "compared": class_counts_event(inside, cells=3 * (k + 1), counted=2),
        "labels": class_counts_event(inner_epsilon(epsilon, rate), cells=k + 1, counted=1),
    }
    noise = {name: shares.noise_variance(event) for name, event in events.items()}
    truth = np.bincount(task.labels, minlength=k + 1)[np.newaxis] / n
    errors: dict[str, list[float]] = defaultdict(list)
    covered: dict[str, list[float]] = defaultdict(list)
    for run in range(runs):
        rng = SimulationRandom(run)
        taken = np.random.default_rng(10_000 + run).random(n) < rate
        y, f, one = task.labels[taken], task.predicted[taken], np.zeros(n, dtype=np.int64)
        cells = {
            "pool": counts.predicted_cells(task.predicted, one, n_classes=k),
            "compared": counts.compared_cells(y, f, one[taken], n_classes=k),
            "labels": counts.label_cells(y, one[taken], n_classes=k),
        }
        queries: dict[str, Callable[..., Measurement]] = {}
        for name, event in events.items():
            queries |= counts.count_query(name, partial(cells.__getitem__, name), event, rng=rng)
        session = MeasuringSession(queries)
        pool, compared = session.ask("pool").reshape(1, k), session.ask("compared").reshape(1, 3, k + 1)
        told = session.ask("labels").reshape(1, k + 1)
        found = {
            ALONE: shares.labels_alone(told, rate=rate, variance=noise["labels"]),
            BOTH: shares.with_model(
                pool,
                compared,
                weight=plan.accuracy,
                rate=rate,
                pool_variance=noise["pool"],
                variance=noise["compared"],
            ),
            MODEL: shares.model_alone(pool, variance=noise["pool"]),
            OPEN: shares.with_model(
                np.bincount(task.predicted, minlength=k)[np.newaxis].astype(np.float64),
                np.bincount(cells["compared"][cells["compared"] >= 0], minlength=3 * (k + 1))
                .reshape(1, 3, k + 1)
                .astype(np.float64),
                weight=1.0,
                rate=rate,
                pool_variance=0.0,
                variance=0.0,
            ),
        }
        for name, share in found.items():
            errors[name].append(100 * np.abs(share.values - truth)[:, :k].mean())
            covered[name].append(((share.low <= truth) & (truth <= share.high))[:, :k].mean())
    return Cell(
        task.name,
        epsilon,
        labels,
        {name: float(np.mean(values)) for name, values in errors.items()},
        {name: float(np.mean(values)) for name, values in covered.items()},
        plan.model_helps(inside, pool_epsilon),
    )


class Abstained(NamedTuple):
    """How often a threshold was found and kept its precision, and the mean part of the pool that it answers."""

    task: str
    precision: float
    kept: float
    found: float
    answered: float
    right: float


def abstained(task: Task, *, runs: int) -> list[Abstained]:
    """Return what thresholds do on all records of the pool; a run without one has kept its promise."""
    from learner.estimators import abstaining
    from privacy.accounting.counts import class_counts_event
    from privacy.accounting.screens import inner_epsilon
    from privacy.mechanisms.randomness import SimulationRandom
    from privacy.mechanisms.shares import count_query

    n, right = len(task.labels), task.labels == task.predicted
    sure, cells = task.probabilities.max(axis=1), abstaining.confidence_cells(task.probabilities)
    rate, pool_epsilon = ABSTAIN_LABELS / n, abstaining.pool_epsilon(n)
    everywhere = class_counts_event(pool_epsilon, cells=abstaining.POOL_CELLS, counted=1)
    inside = inner_epsilon(ABSTAIN_EPSILON - pool_epsilon, rate)
    event = class_counts_event(inside, cells=abstaining.SAMPLE_CELLS, counted=1)
    found: dict[float, list[tuple[float, float] | None]] = defaultdict(list)
    for run in range(runs):
        rng, taken = SimulationRandom(run), np.random.default_rng(10_000 + run).random(n) < rate
        pool = count_query("pool", lambda: cells[:, np.newaxis], everywhere, rng=rng)["pool"]().answer
        outcomes = abstaining.outcome_cells(cells[taken], right[taken], abstaining.bins(pool))
        sample = count_query("sample", partial(np.asarray, outcomes), event, rng=rng)["sample"]().answer
        for one in abstaining.thresholds(pool, sample, scale=event.scale):
            answers = sure >= (2.0 if one.threshold is None else one.threshold)
            found[one.precision].append((answers.mean(), right[answers].mean()) if answers.any() else None)
    return [
        Abstained(
            task.name,
            precision,
            float(np.mean([one is None or one[1] >= precision for one in all_runs])),
            len(some := [one for one in all_runs if one is not None]) / runs,
            float(np.mean([one[0] for one in some])) if some else 0.0,
            float(np.mean([one[1] for one in some])) if some else 0.0,
        )
        for precision, all_runs in found.items()
    ]


def page(cells: list[Cell], sets: list[Task], runs: int, silent: list[Abstained]) -> str:
    """Return the page of results."""
    about = ", ".join(
        f"{task.name} {len(task.labels):,} records, {task.n_classes} classes, "
        f"version 0 right on {100 * (task.labels == task.predicted).mean():.0f} %"
        for task in sets
    )
    lines = [
        "# Shares of classes",
        "",
        f"Made by `{COMMAND} --runs {runs}` on {datetime.datetime.now(tz=datetime.UTC):%d %B %Y}. A simulation on "
        "public data, without any guarantee.",
        "",
        "Mean error of a class's share in points, and coverage of its 95 % interval, over "
        f"{runs} draws of sample and noise (standard error of a coverage at most "
        f"{100 * (0.95 * 0.05 / runs) ** 0.5:.1f} points). Epsilon is that of the whole ask under `null`, and the "
        f"model is version 0, which costs none: {about}. *No privacy* is the prediction-powered estimate without "
        "noise and with weight 1. "
        "*Helps* is what public sizes say beforehand, for a model that is right in three cases of four.",
        "",
        "| task | epsilon | labels | labels alone | model alone | labels with model | no privacy | smaller by | helps "
        "| coverage alone | coverage with model |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {cell.task} | {cell.epsilon:g} | {cell.labels:,} | {cell.errors[ALONE]:.2f} | {cell.errors[MODEL]:.2f} | "
        f"{cell.errors[BOTH]:.2f} | {cell.errors[OPEN]:.2f} | {100 * cell.smaller:.0f} % | "
        f"{'yes' if cell.helps else 'no'} | {100 * cell.covered[ALONE]:.1f} % | {100 * cell.covered[BOTH]:.1f} % |"
        for cell in cells
    ]
    lines += [
        "",
        "## Abstaining",
        "",
        f"Thresholds chosen at epsilon {ABSTAIN_EPSILON:g} and {ABSTAIN_LABELS} labels, of which the model "
        f"learned nothing, in {ABSTAIN_RUNS} draws. *Kept* counts the draws whose threshold is right in its share of "
        "what it answers on the whole pool, or that found none (standard error near 95 %: 1.5 points); the three "
        "columns that follow are about the draws that found one.",
        "",
        "| task | right in at least | kept | found | answers | right | all answers right |",
        "|---|---|---|---|---|---|---|",
    ]
    accuracy = {task.name: (task.labels == task.predicted).mean() for task in sets}
    lines += [
        f"| {one.task} | {100 * one.precision:.0f} % | {100 * one.kept:.1f} % | {100 * one.found:.0f} % | "
        + (f"{100 * one.answered:.0f} % | {100 * one.right:.1f} % | " if one.found else "| | ")
        + f"{100 * accuracy[one.task]:.1f} % |"
        for one in silent
    ]
    return "\n".join(lines) + "\n"


def missed(cells: list[Cell], silent: list[Abstained]) -> list[str]:
    """Return the goals that were not reached."""
    found = [
        f"{cell.task}: the error is smaller by {cell.smaller:.3f}, wanted {SMALLER}"
        for cell in cells
        if (cell.epsilon, cell.labels) == (EPSILON, N_LABELS) and cell.smaller < SMALLER
    ]
    found += [
        f"{cell.task} at {cell.epsilon:g}: {cell.covered[BOTH]:.3f} covered, wanted {COVERED}"
        for cell in cells
        if cell.covered[BOTH] < COVERED
    ]
    return found + [
        f"{one.task}: a threshold for {one.precision:g} kept in {one.kept:.3f} of all draws, wanted {KEPT}"
        for one in silent
        if one.precision == ABSTAIN_PRECISION and one.kept < KEPT
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    import django

    django.setup()
    sets = tasks(arguments.data)
    cells = [
        measured(task, epsilon=epsilon, labels=labels, runs=arguments.runs)
        for task in sets
        for epsilon in EPSILONS
        for labels in LABELS
    ]
    silent = [one for task in sets for one in abstained(task, runs=ABSTAIN_RUNS)]
    text = page(cells, sets, arguments.runs, silent)
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    for goal in missed(cells, silent):
        print(goal, file=sys.stderr)
    return 1 if missed(cells, silent) else 0


if __name__ == "__main__":
    sys.exit(main())
