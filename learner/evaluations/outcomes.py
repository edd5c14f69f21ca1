"""How well a model does on examples whose class is public: macro-F1, calibration and confusion, with intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from annotation.intervals import wilson_interval

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
    """Count what a model says of labelled examples.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
    leaders : ndarray of int, shape (n,)
        The class predicted for each example.
    truth : ndarray of int, shape (n,)
        The class each example has.

    Raises
    ------
    ValueError
        If the shapes do not fit, or there is no example.
    """
    n, classes = probabilities.shape
    if n < 1 or leaders.shape != (n,) or truth.shape != (n,):
        raise ValueError(f"needs a class and a prediction for each of {n} >= 1 examples")
    confusion = np.bincount(truth * classes + leaders, minlength=classes * classes).reshape(classes, classes)
    return binned_counts(confusion.astype(np.int64), probabilities[np.arange(n), leaders], leaders == truth)


def binned_counts(confusion: NDArray[np.int64], confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> Counts:
    """Count what is right and what is wrong, both arrays of one shape, by how sure the model is of it."""
    bins = np.minimum((confidence * BINS).astype(np.intp), BINS - 1)
    numbers, means = [], []
    for chosen in (right, ~right):
        number = np.bincount(bins[chosen], minlength=BINS)
        total = np.bincount(bins[chosen], weights=confidence[chosen], minlength=BINS)
        numbers.append(number.astype(np.int64))
        means.append(np.divide(total, number, out=np.zeros(BINS), where=number > 0))
    return Counts(confusion, numbers[0], numbers[1], means[0], means[1])


def macro_f1(confusion: NDArray[Any]) -> NDArray[np.float64]:
    r"""Return the mean over classes of :math:`2 TP / (2 TP + FP + FN)`, shape of the leading axes of `confusion`.

    A class that neither occurs nor is predicted takes no part.

    Parameters
    ----------
    confusion : ndarray of shape (..., n_classes, n_classes)
    """
    agreed = 2.0 * np.diagonal(confusion, axis1=-2, axis2=-1)
    named = confusion.sum(axis=-1) + confusion.sum(axis=-2)
    return _mean_f1(agreed, named)


def _mean_f1(agreed: NDArray[Any], named: NDArray[Any]) -> NDArray[np.float64]:
    scores = np.divide(agreed, named, out=np.zeros(named.shape), where=named > 0)
    mean: NDArray[np.float64] = scores.sum(axis=-1) / np.maximum((named > 0).sum(axis=-1), 1)
    return mean


def constant_outcome(confusion: NDArray[Any]) -> tuple[int, int, float]:
    """Return what always giving one answer reaches: the likeliest class, how often it is right, and its macro-F1.

    Parameters
    ----------
    confusion : ndarray of int, shape (n_classes, n_classes)
        Examples by true class (rows); the columns do not matter.
    """
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
    """Return the calibration error and its bins, with intervals."""
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
        """Return what cells are multiplied by for their sums by class."""
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
    """Return a share with its Wilson interval; nothing of nothing."""
    if not whole:
        return {"value": None, "low": None, "high": None}
    low, high = wilson_interval(part, whole)
    return {"value": part / whole, "low": low, "high": high}


def counted_share(right: int, whole: int) -> dict[str, Any]:
    """Return a share with what it was counted from."""
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
