"""Krippendorff's alpha of single values: agreement beyond chance, for any distance between answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privacy.wording import gettext_noop as _

# Squared differences between the values that occur, shape (n, n), from the values and how often each is given.
Differences = Callable[[Sequence[int], NDArray[np.float64]], NDArray[np.float64]]


def krippendorff_alpha(questions: Sequence[Sequence[int]], differences: Differences) -> float | None:
    r"""Return :math:`\alpha = 1 - D_o / D_e`: 1 where all agree, 0 for chance.

    Parameters
    ----------
    questions : sequence of sequences of int
        The answers to each question; one that has a single answer tells nothing and takes no part.
    differences : callable
        Squared differences between values, 0 on the diagonal.

    Returns
    -------
    float or None
        None where no question has two answers; 1 where all answers are the same, since nothing is left to compare.

    References
    ----------
    .. [1] Krippendorff, "Computing Krippendorff's alpha-reliability", 2011.
    """
    paired = [answers for answers in questions if len(answers) > 1]
    if not paired:
        return None
    values = sorted({value for answers in paired for value in answers})
    if len(values) == 1:
        return 1.0
    places = {value: place for place, value in enumerate(values)}
    coincidences = np.zeros((len(values), len(values)))
    for answers in paired:
        counts = np.bincount([places[value] for value in answers], minlength=len(values)).astype(np.float64)
        given = np.flatnonzero(counts)
        own = counts[given]
        coincidences[np.ix_(given, given)] += (np.outer(own, own) - np.diag(own)) / (len(answers) - 1)
    totals = coincidences.sum(axis=0)
    apart = differences(values, totals)
    observed = float((coincidences * apart).sum())
    expected = float(totals @ apart @ totals - totals @ apart.diagonal()) / (totals.sum() - 1)
    return 1.0 if expected == 0 else 1 - observed / expected


def nominal(values: Sequence[int], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take all different values to be equally far apart."""
    return 1.0 - np.eye(len(values))


def ordinal(values: Sequence[int], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take values to be as far apart as answers lie between them, half of their own counted."""
    before = np.cumsum(totals) - totals / 2
    squared: NDArray[np.float64] = (before[:, None] - before[None, :]) ** 2
    return squared


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A measure of agreement: its name, and its value over the answers to each question, None without any pair."""

    label: str
    of: Callable[[Sequence[Sequence[int]]], float | None]


NOMINAL: Final = Coefficient(_("Krippendorff's alpha"), partial(krippendorff_alpha, differences=nominal))
ORDINAL: Final = Coefficient(_("Krippendorff's alpha, ordinal"), partial(krippendorff_alpha, differences=ordinal))
