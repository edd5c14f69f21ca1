"""Accuracy of a release on public examples, with intervals and thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from annotation.intervals import wilson_interval

SCHEMA = "dpal-thresholds/1"
WANTED = (0.8, 0.9, 0.95, 0.99)
# A share of fewer examples says next to nothing.
FEWEST = 10


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Predictions for public examples, shape (n, n_classes), the truth, and the names of their uploads.

    What is true is a class each, shape (n,), or whether each has each class, shape (n, n_classes).
    """

    probabilities: NDArray[np.float64]
    truth: NDArray[np.int64] | NDArray[np.bool_]
    datasets: tuple[str, ...] = ()


def thresholds_document(outcomes: Outcomes | None, classes: Sequence[str]) -> dict[str, Any]:
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
    data expect a little less. None where no threshold that keeps ten examples reaches it. Of one class each, the
    examples count of which `place` is the likeliest; of sets (bool, shape (n, n_classes)) all.
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


BINS = 10
RESAMPLES = 1000
# So many of them are drawn at a time: of a thousand classes some ten thousand cells each.
BLOCK = 100
# Resampling ends are stable to about a third of their own width from so many draws on; the seed makes them repeatable.
SEED = 20_260_101
LOWER, UPPER = 0.025, 0.975


@dataclass(frozen=True, slots=True)
class Counts:
    """All that the measures need of a test set, at a size that does not grow with it.

    Parameters
    ----------
    confusion : ndarray of int64, shape (n_classes, n_classes)
        Examples by true class (rows) and predicted class (columns).
    hits, misses : ndarray of int64, shape (BINS,)
        Examples predicted rightly and wrongly, by the probability of the predicted class.
    hit_confidence, miss_confidence : ndarray of float64, shape (BINS,)
        Mean of that probability over them; 0 where there are none.
    """

    confusion: NDArray[np.int64]
    hits: NDArray[np.int64]
    misses: NDArray[np.int64]
    hit_confidence: NDArray[np.float64]
    miss_confidence: NDArray[np.float64]


def count_outcomes(probabilities: NDArray[np.float64], leaders: NDArray[np.intp], truth: NDArray[np.int64]) -> Counts:
    """Count what a model of shape (n, n_classes) probabilities says of n labelled examples."""
    n, classes = probabilities.shape
    if n < 1 or leaders.shape != (n,) or truth.shape != (n,):
        raise ValueError(f"needs a class and a prediction for each of {n} >= 1 examples")
    confusion = np.bincount(truth * classes + leaders, minlength=classes * classes).reshape(classes, classes)
    return binned_counts(confusion.astype(np.int64), probabilities[np.arange(n), leaders], leaders == truth)


def binned_counts(confusion: NDArray[np.int64], confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> Counts:
    bins = np.minimum((confidence * BINS).astype(np.intp), BINS - 1)
    numbers, means = [], []
    for chosen in (right, ~right):
        number = np.bincount(bins[chosen], minlength=BINS)
        total = np.bincount(bins[chosen], weights=confidence[chosen], minlength=BINS)
        numbers.append(number.astype(np.int64))
        means.append(np.divide(total, number, out=np.zeros(BINS), where=number > 0))
    return Counts(confusion, numbers[0], numbers[1], means[0], means[1])


def macro_f1(confusion: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean of :math:`2 TP / (2 TP + FP + FN)` over classes that occur, confusions (..., n_classes,
    n_classes).
    """
    agreed = 2.0 * np.diagonal(confusion, axis1=-2, axis2=-1)
    named = confusion.sum(axis=-1) + confusion.sum(axis=-2)
    return _mean_f1(agreed, named)


def _mean_f1(agreed: NDArray[Any], named: NDArray[Any]) -> NDArray[np.float64]:
    scores = np.divide(agreed, named, out=np.zeros(named.shape), where=named > 0)
    mean: NDArray[np.float64] = scores.sum(axis=-1) / np.maximum((named > 0).sum(axis=-1), 1)
    return mean


def constant_outcome(confusion: NDArray[Any]) -> tuple[int, int, float]:
    """Return what always giving one answer reaches: the likeliest class, how often it is right, and its macro-F1."""
    truth = np.asarray(confusion).sum(axis=1)
    place = int(truth.argmax())
    always = np.zeros((len(truth), len(truth)), dtype=np.int64)
    always[:, place] = truth
    return place, int(truth[place]), float(macro_f1(always))


def calibration_error(hits: NDArray[Any], misses: NDArray[Any], counts: Counts) -> NDArray[np.float64]:
    """Return the expected calibration error: how far confidence is from accuracy, averaged over the examples.

    Parameters
    ----------
    hits, misses : ndarray of shape (..., BINS)
        Numbers of examples; `counts` gives their mean confidence.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger, "On Calibration of Modern Neural Networks", ICML 2017, eq. 3.
    """
    gaps = np.abs(hits - hits * counts.hit_confidence - misses * counts.miss_confidence)
    error: NDArray[np.float64] = gaps.sum(axis=-1) / np.maximum((hits + misses).sum(axis=-1), 1)
    return error


def measures(counts: Counts) -> dict[str, Any]:
    """Return macro-F1, calibration and confusion with 95 % intervals, as plain JSON values.

    Shares of counts carry Wilson intervals; macro-F1 and the calibration error the percentiles of 1000 multinomial
    resamples of the counted cells, widened where needed to hold the estimate.
    """
    rng = np.random.default_rng(SEED)
    binned = binned_measures(counts, rng)
    return {
        "macro_f1": with_ends(float(macro_f1(counts.confusion)), _resampled_f1(counts.confusion, rng)),
        **binned,
        "confusion": counts.confusion.tolist(),
        "constant": _constant(counts),
        "recall": [counted_share(int(row[place]), int(row.sum())) for place, row in enumerate(counts.confusion)],
    }


def binned_measures(counts: Counts, rng: np.random.Generator) -> dict[str, Any]:
    cells = np.concatenate([counts.hits, counts.misses])
    examples = int(cells.sum())
    binned = rng.multinomial(examples, cells / examples, size=RESAMPLES)
    error = calibration_error(counts.hits, counts.misses, counts)
    return {
        "calibration_error": with_ends(float(error), calibration_error(binned[:, :BINS], binned[:, BINS:], counts)),
        "reliability": [_bin(counts, place) for place in range(BINS) if counts.hits[place] + counts.misses[place]],
    }


def _resampled_f1(confusion: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return macro-F1 of resamples; of many classes most cells are empty and stay so, and are not drawn."""
    truth, said = np.nonzero(confusion)
    cells = confusion[truth, said]
    examples, classes = int(cells.sum()), len(confusion)

    def totals(of: NDArray[np.intp], counted: NDArray[Any]) -> csr_array:
        return csr_array((counted.astype(np.float64), (np.arange(len(cells)), of)), shape=(len(cells), classes))

    agreed, every = totals(truth, 2 * (truth == said)), np.ones(len(cells))
    named = totals(truth, every) + totals(said, every)
    values = []
    for start in range(0, RESAMPLES, BLOCK):
        drawn = rng.multinomial(examples, cells / examples, size=min(BLOCK, RESAMPLES - start))
        values.append(_mean_f1(drawn @ agreed, drawn @ named))
    return np.concatenate(values)


def _constant(counts: Counts) -> dict[str, Any]:
    place, correct, f1 = constant_outcome(counts.confusion)
    examples = int(counts.confusion.sum())
    return {"class": place, "correct": correct, "accuracy": correct / examples, "macro_f1": f1}


def with_ends(value: float, resampled: NDArray[np.float64]) -> dict[str, float]:
    """Return a measure with the ends of its 95 % interval, widened where needed to hold it."""
    low, high = np.quantile(resampled, (LOWER, UPPER))
    return {"value": value, "low": min(float(low), value), "high": max(float(high), value)}


def share_with_interval(part: int, whole: int) -> dict[str, float | None]:
    if not whole:
        return {"value": None, "low": None, "high": None}
    low, high = wilson_interval(part, whole)
    return {"value": part / whole, "low": low, "high": high}


def counted_share(right: int, whole: int) -> dict[str, Any]:
    return {"correct": right, "examples": whole, **share_with_interval(right, whole)}


def _bin(counts: Counts, place: int) -> dict[str, Any]:
    hits, misses = int(counts.hits[place]), int(counts.misses[place])
    confidence = hits * counts.hit_confidence[place] + misses * counts.miss_confidence[place]
    return {
        "from": place / BINS,
        "to": (place + 1) / BINS,
        "examples": hits + misses,
        "correct": hits,
        "confidence": float(confidence) / (hits + misses),
        **share_with_interval(hits, hits + misses),
    }


# Examples are drawn again in so many groups, so that the time does not grow with their number.
GROUPS: Final = 500


def set_measures(
    members: NDArray[np.bool_], probabilities: NDArray[np.float64], truth: NDArray[np.bool_]
) -> dict[str, Any]:
    """Return F1, calibration, recall and precision with 95 % intervals, as plain JSON values; shapes (n, n_classes).

    Micro-F1 counts every class of every example alike, macro-F1 is the mean over classes of which any example has or is
    given one. Calibration is that of every class of every example by itself. There is no confusion matrix: a class is
    not taken for another one where both may be there.
    """
    if len(truth) < 1 or members.shape != truth.shape or probabilities.shape != truth.shape:
        raise ValueError(f"needs classes and predictions of one shape, got {truth.shape} and {members.shape}")
    rng = np.random.default_rng(SEED)
    agreed, named = members & truth, members.astype(np.int64) + truth
    found, given, there = agreed.sum(axis=0), members.sum(axis=0), truth.sum(axis=0)
    return {
        **f1_measures(agreed, named, rng),
        # All classes of all examples: those that are there apart from those that are not.
        **binned_measures(binned_counts(np.zeros((0, 0), dtype=np.int64), probabilities, truth), rng),
        "confusion": [],
        "constant": _constant_of_sets(truth),
        "recall": [counted_share(int(right), int(whole)) for right, whole in zip(found, there, strict=True)],
        "precision": [counted_share(int(right), int(whole)) for right, whole in zip(found, given, strict=True)],
    }


def f1_measures(agreed: NDArray[Any], named: NDArray[Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return micro- and macro-F1 with 95 % intervals from true positives and :math:`2 TP + FP + FN`, (n, n_classes)."""
    groups = np.arange(len(agreed)) % GROUPS
    both, either = _by_group(agreed, groups), _by_group(named, groups)
    drawn = rng.multinomial(len(both), np.full(len(both), 1 / len(both)), size=RESAMPLES)
    resampled = [f1_scores(weights @ both, weights @ either) for weights in drawn]
    micro, macro = f1_scores(both.sum(axis=0), either.sum(axis=0))
    return {
        "micro_f1": with_ends(micro, np.array([each[0] for each in resampled])),
        "macro_f1": with_ends(macro, np.array([each[1] for each in resampled])),
    }


def f1_scores(agreed: NDArray[Any], named: NDArray[Any]) -> tuple[float, float]:
    """Return micro- and macro-F1 from true positives and from :math:`2 TP + FP + FN`, each of shape (n_classes,)."""
    micro = 2.0 * float(agreed.sum()) / max(float(named.sum()), 1.0)
    by_class = np.divide(2.0 * agreed, named, out=np.zeros(len(named)), where=named > 0)
    return micro, float(by_class.sum()) / max(int((named > 0).sum()), 1)


def sets_right(members: NDArray[np.bool_], truth: NDArray[np.bool_]) -> int:
    return int((members == truth).all(axis=1).sum())


def _by_group(counts: NDArray[Any], groups: NDArray[np.intp]) -> NDArray[np.int64]:
    sums = np.zeros((min(len(counts), GROUPS), counts.shape[1]), dtype=np.int64)
    np.add.at(sums, groups, counts)
    return sums


def _constant_of_sets(truth: NDArray[np.bool_]) -> dict[str, Any]:
    kinds, counts = np.unique(truth, axis=0, return_counts=True)
    always = kinds[int(counts.argmax())]
    named = truth.sum(axis=0) + len(truth) * always.astype(np.int64)
    micro, macro = f1_scores(np.where(always, truth.sum(axis=0), 0), named)
    return {
        "classes": np.flatnonzero(always).tolist(),
        "correct": int(counts.max()),
        "accuracy": int(counts.max()) / len(truth),
        "micro_f1": micro,
        "macro_f1": macro,
    }
