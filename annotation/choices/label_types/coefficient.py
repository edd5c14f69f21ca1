"""Krippendorff's alpha: agreement beyond chance, for any distance between answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from annotation.choices.label_types.class_sets import places_of
from privacy.wording import gettext_noop as _

# Distances between two selections of the values that occur, shape (n, m), from the places of both.
Between = Callable[[NDArray[np.intp], NDArray[np.intp]], NDArray[np.float64]]
# Values compared with all others at once: a thousand classes and a hundred thousand different sets stay within memory.
BLOCK = 512


def krippendorff_alpha(
    questions: Sequence[Sequence[int]], distances: Callable[[Sequence[int], NDArray[np.float64]], Between]
) -> float | None:
    r"""Return :math:`\alpha = 1 - D_o / D_e`: 1 where all agree, 0 for chance.

    Parameters
    ----------
    questions : sequence of sequences of int
        The answers to each question; one that has a single answer tells nothing and takes no part.
    distances : callable
        From the values that occur and how often each is given, their (squared) distances; 0 from a value to itself.

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
    place_of = {value: place for place, value in enumerate(values)}
    places = [np.array([place_of[value] for value in answers], dtype=np.intp) for answers in paired]
    totals = np.bincount(np.concatenate(places), minlength=len(values)).astype(np.float64)
    between = distances(values, totals)
    everything = np.arange(len(values), dtype=np.intp)
    observed = sum(float(between(own, own).sum()) / (len(own) - 1) for own in places)
    blocks = (everything[start : start + BLOCK] for start in range(0, len(values), BLOCK))
    expected = sum(float(totals[rows] @ between(rows, everything) @ totals) for rows in blocks) / (totals.sum() - 1)
    return 1.0 if expected == 0 else 1 - observed / expected


def nominal(values: Sequence[int], totals: NDArray[np.float64]) -> Between:
    return lambda rows, columns: (rows[:, None] != columns[None, :]).astype(np.float64)


def ordinal(values: Sequence[int], totals: NDArray[np.float64]) -> Between:
    """Take values to be as far apart as answers lie between them, half of their own counted."""
    before: NDArray[np.float64] = np.cumsum(totals) - totals / 2
    return lambda rows, columns: (before[rows][:, None] - before[columns][None, :]) ** 2


def masi(values: Sequence[int], totals: NDArray[np.float64]) -> Between:
    sets = [places_of(value) for value in values]
    members = np.zeros((len(sets), 1 + max((places[-1] for places in sets if places), default=0)), dtype=np.float32)
    for row, chosen in enumerate(sets):
        members[row, list(chosen)] = 1.0
    return lambda rows, columns: masi_distances(members[rows], members[columns])


def masi_distances(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float64]:
    r"""Return :math:`1 - J M` between sets, shape (n, m), from their members, shapes (n, K) and (m, K).

    J is the Jaccard index. M is 1 for equal sets, 2/3 where one holds the other, 1/3 where they only share members, 0
    where they share none. Two empty sets are equal.

    References
    ----------
    .. [1] Passonneau, "Measuring agreement on set-valued items (MASI) for semantic and pragmatic annotation", 2006.
    """
    # Zeros and ones cannot be invalid, but kernels of OpenBLAS raise that flag for what lies beside a small matrix.
    with np.errstate(invalid="ignore"):
        shared = (left @ right.T).astype(np.float64)
    sizes, others = left.sum(axis=1, dtype=np.float64)[:, None], right.sum(axis=1, dtype=np.float64)[None, :]
    union = sizes + others - shared
    smaller, larger = np.minimum(sizes, others), np.maximum(sizes, others)
    monotone = np.select([shared == larger, shared == smaller, shared > 0], [1.0, 2 / 3, 1 / 3], default=0.0)
    jaccard = np.divide(shared, union, out=np.ones(union.shape), where=union > 0)
    distances: NDArray[np.float64] = 1.0 - jaccard * monotone
    return distances


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A measure of agreement: its name, and its value over the answers to each question, None without any pair."""

    label: str
    of: Callable[[Sequence[Sequence[int]]], float | None]


NOMINAL: Final = Coefficient(_("Krippendorff's alpha"), partial(krippendorff_alpha, distances=nominal))
ORDINAL: Final = Coefficient(_("Krippendorff's alpha, ordinal"), partial(krippendorff_alpha, distances=ordinal))
MASI: Final = Coefficient(
    _("Krippendorff's alpha with the MASI distance of sets"), partial(krippendorff_alpha, distances=masi)
)
