"""Tuned baselines without privacy on the labels of a secret sample."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from learner.simulation.outcome import MeanAccuracy
from learner.simulation.task import SimulationTask
from learner.simulation.trusted import encoded_records, settings_of, simulate_trusted

# So many labels settle a strength; more hardly move it.
MOST_TUNED = 1_000
# Of so many labels times classes a fit takes minutes, and hardly moves from seed to seed.
MOST_OF_ALL_SEEDS = 500_000
FEWER_SEEDS = 3
# Epsilon at which noise is far below what a release is rounded to in print.
HARDLY_ANY_NOISE = "300"
LOGISTIC = {"C": [1.0, 10.0, 100.0]}
KERNEL = {"C": [10.0, 100.0], "gamma": [0.3, 1.0, 3.0]}
PIPELINE = {f"logisticregression__{name}": values for name, values in LOGISTIC.items()}


def seeds_for(task: SimulationTask, labels: int, seeds: int) -> int:
    """Return over how many seeds baselines and peers learn from so many labels."""
    return min(seeds, FEWER_SEEDS) if labels * len(task.classes) > MOST_OF_ALL_SEEDS else seeds


def sample_of(task: SimulationTask, labels: int, seed: int) -> NDArray[np.intp]:
    """Return a secret sample: everybody with probability labels / records."""
    return np.flatnonzero(np.random.default_rng([seed, labels]).random(task.n_records) < labels / task.n_records)


def baselines(task: SimulationTask, *, seeds: int) -> dict[str, Any]:
    """Return accuracies without privacy by name and number of labels; strengths chosen by folds of the first sample."""
    rows, test = encoded_records(task, settings_of(task))
    tried: dict[str, tuple[BaseEstimator, dict[str, list[float]], Any, Any]] = {
        "logistic regression": (LogisticRegression(max_iter=300), LOGISTIC, rows, test),
        "RBF SVM": (SVC(cache_size=500), KERNEL, rows, test),
    }
    if task.texts:
        words = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(max_iter=300))
        pool, held_out = (np.array(texts, dtype=object) for texts in (task.texts, task.test_texts))
        tried["TF-IDF"] = (words, PIPELINE, pool, held_out)
    found = {name: _accuracies(task, *parts, seeds=seeds) for name, parts in tried.items()}
    found["hardly any noise"] = _hardly_any_noise(task, seeds=seeds)
    return found


def _accuracies(
    task: SimulationTask, model: BaseEstimator, grid: dict[str, list[float]], rows: Any, test: Any, *, seeds: int
) -> dict[str, dict[str, float]]:
    found = {}
    for labels in task.label_counts:
        samples = [sample_of(task, labels, seed) for seed in range(seeds_for(task, labels, seeds))]
        few = samples[0][:MOST_TUNED]
        counts = np.bincount(task.labels[few])
        folds = StratifiedKFold(3 if counts[counts > 0].min() >= 3 else 2, shuffle=True, random_state=0)
        best = GridSearchCV(model, grid, cv=folds).fit(rows[few], task.labels[few]).best_params_
        made = [model.set_params(**best).fit(rows[one], task.labels[one]).predict(test) for one in samples]
        found[str(labels)] = _plain(MeanAccuracy.over_seeds(made, task.test_labels))
    return found


def _hardly_any_noise(task: SimulationTask, *, seeds: int) -> dict[str, dict[str, float]]:
    settings = {**task.settings, "pool_epsilon": HARDLY_ANY_NOISE}
    quiet = dataclasses.replace(task, settings=settings, seeds=seeds)
    return {str(point.labels): _plain(point.project) for point in simulate_trusted(quiet).points}


def _plain(found: MeanAccuracy) -> dict[str, float]:
    return {"accuracy": found.accuracy, "accuracy_se": found.accuracy_se, "macro_f1": found.macro_f1}


def peer_rows(task: SimulationTask, labels: Sequence[int], *, seeds: int) -> dict[str, NDArray[Any]]:
    """Return what the peers' environment needs of a task, to be stored as `.npz`."""
    rows, test = encoded_records(task, settings_of(task))
    samples = {f"sample_{count}_{seed}": sample_of(task, count, seed) for count in labels for seed in range(seeds)}
    shape = {"X": rows.astype(np.float32), "y": task.labels, "test": test.astype(np.float32), "truth": task.test_labels}
    return {**shape, **samples}
