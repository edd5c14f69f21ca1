"""Labels needed for an accuracy: our selection beside small-text and scikit-activeml, on the same vectors.

Run: python -m benchmarks.selection --data DIR [--seeds 20] [--peers SITE_PACKAGES] [--kept FILE.json] [--out FILE.md]

DIR holds slurp_dev_test_utterances.csv; an interrupted run goes on from FILE.json.
"""

import argparse
import csv
import importlib.metadata
import importlib.util
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from learner.features.static_encoder import StaticEncoder
from learner.linear_model import LinearModel
from learner.strategies.clustered_uncertainty import ClusteredUncertainty
from learner.strategies.random import RandomChoice
from learner.strategies.uncertainty import Uncertainty
from privacy.mechanisms.randomness import SimulationRandom

FILE = "slurp_dev_test_utterances.csv"
FIRST, BATCH, LAST = 60, 20, 300
WANTED = (0.6, 0.7, 0.75, 0.8)
OURS = "DPAL clustered_uncertainty, margin"
# From the pool, the counts, the labels known so far (-1: unknown), the fitted model, a size and a seed to places.
Choose = Callable[[NDArray[Any], NDArray[Any], NDArray[Any], Any, int, int], NDArray[np.int64]]


def ours(strategy: Any, *, counted: bool = False, cold: bool = False) -> Choose:
    """Return a strategy of the project; one that needs a model begins at random, `cold` begins by clusters."""

    def choose(X: Any, counts: Any, known: Any, model: Any, n: int, seed: int) -> NDArray[np.int64]:
        left, rng = np.flatnonzero(known < 0), SimulationRandom(seed)
        linear = None
        if model is not None:
            names = tuple(str(name) for name in model.classes_)
            linear = LinearModel(model.coef_, model.intercept_, names, "softmax")
        if linear is None and not cold:
            return RandomChoice().query(X, left, None, n, rng)
        further = {"counts": counts, "asked": np.flatnonzero(known >= 0)} if counted else {}
        return strategy.query(X, left, linear, n, rng, **further)

    return choose


def scikit_activeml(name: str, n_classes: int) -> Choose:
    """Return a pool strategy of scikit-activeml with the same classifier."""
    from skactiveml import pool
    from skactiveml.classifier import SklearnClassifier

    def choose(X: Any, counts: Any, known: Any, model: Any, n: int, seed: int) -> NDArray[np.int64]:
        strategy = getattr(pool, name)(random_state=seed)
        y = np.where(known < 0, np.nan, known)
        further: dict[str, Any] = {}
        if name in ("Badge", "UncertaintySampling"):
            if model is None:
                return RandomChoice().query(X, np.flatnonzero(known < 0), None, n, SimulationRandom(seed))
            further["clf"] = SklearnClassifier(classifier(), classes=np.arange(n_classes), random_state=seed)
        return np.asarray(strategy.query(X=X, y=y, batch_size=n, **further), dtype=np.int64)

    return choose


def small_text(name: str) -> Choose:
    """Return a strategy of small-text over the same vectors, or over the same model's probabilities."""
    import small_text as peer

    def choose(X: Any, counts: Any, known: Any, model: Any, n: int, seed: int) -> NDArray[np.int64]:
        left, labelled = np.flatnonzero(known < 0), np.flatnonzero(known >= 0)
        np.random.seed(seed)  # noqa: NPY002  # it draws from the old global generator
        if model is None and name != "EmbeddingKMeans":
            return RandomChoice().query(X, left, None, n, SimulationRandom(seed))
        if name == "BreakingTies":
            # All it asks of a classifier are the probabilities of what it calls a dataset.
            picked = peer.BreakingTies().query(model, X, left, labelled, known[labelled], n=n)
        else:
            order = np.concatenate([left, labelled])
            picked = getattr(peer, name)().query(None, X, left, labelled, known[labelled], n=n, embeddings=X[order])
        return np.asarray(picked, dtype=np.int64)

    return choose


def classifier() -> LogisticRegression:
    return LogisticRegression(C=10.0, max_iter=200)


def strategies(n_classes: int) -> dict[str, Choose]:
    found: dict[str, Choose] = {
        "random": ours(RandomChoice()),
        "DPAL uncertainty": ours(Uncertainty()),
        "DPAL clustered_uncertainty": ours(ClusteredUncertainty("entropy"), counted=True, cold=True),
        "DPAL clustered_uncertainty, margin": ours(ClusteredUncertainty("margin"), counted=True, cold=True),
    }
    if importlib.util.find_spec("small_text"):
        for name in ("BreakingTies", "GreedyCoreset", "EmbeddingKMeans"):
            found[f"small-text {name}"] = small_text(name)
    if importlib.util.find_spec("skactiveml"):
        for name in ("UncertaintySampling", "Badge", "CoreSet", "TypiClust"):
            found[f"scikit-activeml {name}"] = scikit_activeml(name, n_classes)
    return found


def course(
    choose: Choose, X: NDArray[Any], counts: NDArray[Any], truth: NDArray[Any], test: tuple[Any, Any], *, seed: int
) -> list[tuple[int, float]]:
    """Return (labels, accuracy) after every batch."""
    known, model, found = np.full(len(X), -1), None, []
    while (known >= 0).sum() < LAST:
        size = FIRST if model is None else BATCH
        picked = np.asarray(choose(X, counts, known, model, size, seed))
        known[picked] = truth[picked]
        labelled = np.flatnonzero(known >= 0)
        model = classifier().fit(X[labelled], truth[labelled])
        found.append((len(labelled), float(model.score(*test))))
    return found


def labels_for(one: list[tuple[int, float]], wanted: float) -> float:
    """Return the labels after which a course stayed at an accuracy or above it on two batches in a row; inf if never.

    A single batch may pass by luck, and the last one has none after it.
    """
    for (count, accuracy), (_later, after) in pairwise(one):
        if min(accuracy, after) >= wanted:
            return count
    return np.inf


def band(numbers: NDArray[np.float64]) -> str:
    """Return the median and the quartiles of labels needed, none of which needs every course to arrive."""
    shown = [
        f"{value:.0f}" if np.isfinite(value) else f"> {LAST}"
        for value in np.quantile(numbers, (0.5, 0.25, 0.75), method="inverted_cdf")
    ]
    return f"{shown[0]} ({shown[1]} to {shown[2]})" if len(set(shown)) > 1 else shown[0]


def table(runs: dict[str, list[list[tuple[int, float]]]], absent: list[str], versions: list[str]) -> str:
    """Return the accuracy at some numbers of labels, the labels needed for some accuracies, and the rows beside ours.

    Accuracies carry their standard error over the seeds, labels their quartiles; a difference is taken seed by seed,
    on the same held-out texts.
    """
    shown = (60, 120, 180, 300)
    heads = [f"accuracy at {n}" for n in shown] + [f"labels for {wanted:g}" for wanted in WANTED]
    lines = ["| strategy | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    accuracies = {
        name: np.array([[value for _count, value in one] for one in courses]) for name, courses in runs.items()
    }
    for name, courses in runs.items():
        labels = np.array([count for count, _accuracy in courses[0]])
        cells = [_with_error(accuracies[name][:, labels == number].ravel()) for number in shown]
        cells += [band(np.array([labels_for(one, wanted) for one in courses])) for wanted in WANTED]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        f"Mean accuracy over all batches, beside {OURS} on the same seeds:",
        "",
        "| strategy | mean accuracy | difference |",
        "|---|---:|---:|",
    ]
    over_all = {name: values.mean(axis=1) for name, values in accuracies.items()}
    for name, values in over_all.items():
        apart = "" if name == OURS else _with_error(values - over_all[OURS], sign="+")
        lines.append(f"| {name} | {_with_error(values)} | {apart} |")
    lines += ["", *(f"Absent and not compared: {name}." for name in absent), *versions]
    return "\n".join(lines) + "\n"


def _with_error(values: NDArray[np.float64], *, sign: str = "") -> str:
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
    return f"{values.mean():{sign}.3f} ± {error:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--peers", type=Path, help="site-packages of an environment with the peers")
    parser.add_argument("--kept", type=Path, help="what was run already, and is added to after every course")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.peers:
        # Last, so that what the project brings along stays its own.
        sys.path.append(str(arguments.peers))
    warnings.simplefilter("ignore")
    with (arguments.data / FILE).open(newline="") as file:
        records = [(row["text"], row["label"].split("_")[0]) for row in csv.DictReader(file)]
    often, meant = Counter(text for text, _label in records), dict(records)
    texts = sorted(often)
    names = sorted(set(meant.values()))
    X = StaticEncoder().transform(texts)
    truth = np.array([names.index(meant[text]) for text in texts])
    counts = np.array([often[text] for text in texts], dtype=np.float64)
    everybody = strategies(len(names))
    kept: dict[str, list[tuple[int, float]]] = {}
    if arguments.kept and arguments.kept.exists():
        kept = json.loads(arguments.kept.read_text())
    for seed in range(arguments.seeds):
        held = np.random.default_rng(seed).random(len(texts)) < 0.3
        for name, choose in everybody.items():
            if (key := f"{seed} {name}") in kept:
                continue
            test = (X[held], truth[held])
            kept[key] = course(choose, X[~held], counts[~held], truth[~held], test, seed=seed)
            print(f"seed {seed}, {name}: {kept[key][-1][1]:.3f}", file=sys.stderr, flush=True)
            if arguments.kept:
                arguments.kept.write_text(json.dumps(kept))
    runs = {name: [kept[f"{seed} {name}"] for seed in range(arguments.seeds)] for name in everybody}
    peers = {"small-text": "small_text", "scikit-activeml": "skactiveml"}
    absent = [name for name, module in peers.items() if not importlib.util.find_spec(module)]
    versions = [f"{name} {importlib.metadata.version(name)}." for name in peers if name not in absent]
    page = table(runs, absent, versions)
    if arguments.out:
        arguments.out.write_text(page)
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
