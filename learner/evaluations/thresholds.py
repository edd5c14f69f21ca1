"""thresholds.json: how sure a model must be of a class for a wanted precision, by public examples alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation.intervals import wilson_interval

SCHEMA = "dpal-thresholds/1"
WANTED = (0.8, 0.9, 0.95, 0.99)
# A share of fewer examples says next to nothing.
FEWEST = 10


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What a model says of public examples, shape (n, n_classes), what is true, and the names of their uploads.

    What is true is a class each, shape (n,), or whether each has each class, shape (n, n_classes).
    """

    probabilities: NDArray[np.float64]
    truth: NDArray[np.int64] | NDArray[np.bool_]
    datasets: tuple[str, ...] = ()


def thresholds_document(outcomes: Outcomes | None, classes: Sequence[str]) -> dict[str, Any]:
    """Return the content of thresholds.json; without public examples no class has any."""
    known = outcomes is not None and len(outcomes.truth) > 0
    return {
        "schema": SCHEMA,
        "wanted": list(WANTED),
        "datasets": list(outcomes.datasets) if outcomes is not None else [],
        "examples": len(outcomes.truth) if outcomes is not None else 0,
        "classes": {
            name: class_thresholds(outcomes.probabilities, outcomes.truth, place)
            if outcomes is not None and known
            else [None] * len(WANTED)
            for place, name in enumerate(classes)
        },
    }


def class_thresholds(
    probabilities: NDArray[np.float64], truth: NDArray[np.int64] | NDArray[np.bool_], place: int
) -> list[dict[str, Any] | None]:
    """Return for each wanted precision the smallest probability from which on predictions of a class reach it.

    The share and its 95 % Wilson interval are those of the examples kept, among which the threshold was chosen: on new
    data expect a little less. None where no threshold that keeps ten examples reaches it.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
    truth : ndarray of int, shape (n,), or of bool, shape (n, n_classes)
        Of one class each, those are looked at of which it is the likeliest; of sets all.
    place : int
        The class.
    """
    is_set = truth.ndim == 2
    named = np.ones(len(truth), dtype=np.bool_) if is_set else probabilities.argmax(axis=1) == place
    has_it = truth[:, place] if is_set else truth == place
    sure = probabilities[named, place]
    order = np.argsort(-sure, kind="stable")
    sure, right = sure[order], np.cumsum(has_it[named][order], dtype=np.int64)
    kept = np.arange(1, len(sure) + 1)
    # A threshold keeps all examples that are as sure as it says.
    is_last = np.append(sure[1:] < sure[:-1], True) if len(sure) else np.empty(0, dtype=np.bool_)
    found: list[dict[str, Any] | None] = []
    for wanted in WANTED:
        reaching = np.flatnonzero(is_last & (kept >= FEWEST) & (right >= wanted * kept))
        found.append(_row(wanted, sure, right, int(reaching[-1])) if len(reaching) else None)
    return found


def _row(wanted: float, sure: NDArray[np.float64], right: NDArray[np.int64], last: int) -> dict[str, Any]:
    kept = last + 1
    return {
        "precision": wanted,
        "threshold": float(sure[last]),
        "kept": kept,
        "right": int(right[last]),
        "interval": list(wilson_interval(int(right[last]), kept)),
    }
