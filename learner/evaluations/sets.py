"""How well a model of several classes does on examples whose classes are public: F1 by example and by class."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from learner.evaluations.outcomes import RESAMPLES, SEED, binned_counts, binned_measures, counted_share, with_ends

# Examples are drawn again in so many groups, so that the time does not grow with their number.
GROUPS: Final = 500


def set_measures(
    members: NDArray[np.bool_], probabilities: NDArray[np.float64], truth: NDArray[np.bool_]
) -> dict[str, Any]:
    """Return F1, calibration, recall and precision with 95 % intervals, as plain JSON values.

    Micro-F1 counts every class of every example alike, macro-F1 is the mean over classes of which any example has or
    is given one. Calibration is that of every class of every example by itself. There is no confusion matrix: a class
    is not taken for another one where both may be there.

    Parameters
    ----------
    members, truth : ndarray of bool, shape (n, n_classes)
        The classes that are predicted and those that are there.
    probabilities : ndarray of shape (n, n_classes)
        Of each class by itself.

    Raises
    ------
    ValueError
        If the shapes do not fit, or there is no example.
    """
    if len(truth) < 1 or members.shape != truth.shape or probabilities.shape != truth.shape:
        raise ValueError(f"needs classes and predictions of one shape, got {truth.shape} and {members.shape}")
    rng = np.random.default_rng(SEED)
    agreed, named = members & truth, members.astype(np.int64) + truth
    groups = np.arange(len(truth)) % GROUPS
    both, either = _by_group(agreed, groups), _by_group(named, groups)
    drawn = rng.multinomial(len(both), np.full(len(both), 1 / len(both)), size=RESAMPLES)
    resampled = [f1_scores(weights @ both, weights @ either) for weights in drawn]
    micro, macro = f1_scores(both.sum(axis=0), either.sum(axis=0))
    found, given, there = agreed.sum(axis=0), members.sum(axis=0), truth.sum(axis=0)
    return {
        "micro_f1": with_ends(micro, np.array([each[0] for each in resampled])),
        "macro_f1": with_ends(macro, np.array([each[1] for each in resampled])),
        # All classes of all examples: those that are there apart from those that are not.
        **binned_measures(binned_counts(np.zeros((0, 0), dtype=np.int64), probabilities, truth), rng),
        "confusion": [],
        "constant": _constant(truth),
        "recall": [counted_share(int(right), int(whole)) for right, whole in zip(found, there, strict=True)],
        "precision": [counted_share(int(right), int(whole)) for right, whole in zip(found, given, strict=True)],
    }


def f1_scores(agreed: NDArray[Any], named: NDArray[Any]) -> tuple[float, float]:
    r"""Return micro- and macro-F1 from how often each class is rightly named, and how often it is named or there.

    Parameters
    ----------
    agreed : ndarray of shape (n_classes,)
        True positives.
    named : ndarray of shape (n_classes,)
        :math:`2 TP + FP + FN`.
    """
    micro = 2.0 * float(agreed.sum()) / max(float(named.sum()), 1.0)
    by_class = np.divide(2.0 * agreed, named, out=np.zeros(len(named)), where=named > 0)
    return micro, float(by_class.sum()) / max(int((named > 0).sum()), 1)


def sets_right(members: NDArray[np.bool_], truth: NDArray[np.bool_]) -> int:
    """Return how many examples are given exactly the classes they have."""
    return int((members == truth).all(axis=1).sum())


def _by_group(counts: NDArray[Any], groups: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return sums over the examples of each group, shape (groups, n_classes)."""
    sums = np.zeros((min(len(counts), GROUPS), counts.shape[1]), dtype=np.int64)
    np.add.at(sums, groups, counts)
    return sums


def _constant(truth: NDArray[np.bool_]) -> dict[str, Any]:
    """Return what always giving one set reaches: the most frequent one, and its F1 scores."""
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
