"""Spread a batch over what there is to ask about: weighted k-means, and the candidate nearest to each middle."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

# More candidates than this are cut to the heaviest: a batch of some dozens is as well spread over them.
MOST_CLUSTERED = 20_000
ROUNDS = 12
GOLDEN = (5**0.5 - 1) / 2
# Squared distance below which two texts are one, above what rounding makes of equal rows.
SAME = 1e-9


def spread_batch(rows: NDArray[np.floating], weights: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Choose rows that stand for all the others.

    Parameters
    ----------
    rows : ndarray of floats, shape (m, d)
        Features of the candidates.
    weights : ndarray of float64, shape (m,)
        How much each counts, >= 0; middles are drawn towards heavy ones.
    n : int
        How many to choose, 0 <= n <= m.

    Returns
    -------
    ndarray of int64, shape (n,)
        Distinct places in `rows`, those of the heaviest clusters first. The same rows and weights give the same
        places: nothing is drawn.

    References
    ----------
    .. [1] Zhdanov, "Diverse mini-batch active learning", 2019, section 3.
    """
    if n == 0:
        return np.empty(0, dtype=np.int64)
    heaviest = np.argsort(-weights, kind="stable")[: max(MOST_CLUSTERED, n)]
    values = np.asarray(rows[heaviest], dtype=np.float64)
    heavy = weights[heaviest]
    # Where nothing weighs anything all count alike.
    heavy = heavy / heavy.max() if heavy.max() > 0 else np.ones(len(heavy))
    # Products this small are slower shared among threads than alone.
    with threadpool_limits(limits=1, user_api="blas"):
        picks = _nearest(values, heavy, _middles(values, heavy, n))
    # Fewer different texts than questions: the heaviest of the rest.
    rest = np.setdiff1d(np.arange(len(values)), picks, assume_unique=True)[: n - len(picks)]
    chosen: NDArray[np.int64] = heaviest[np.concatenate([picks, rest])]
    return chosen


def _middles(values: NDArray[np.float64], weights: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return at most n middles after some rounds of Lloyd's algorithm."""
    squares = np.einsum("ij,ij->i", values, values)
    middles = values[_seeds(values, squares, weights, n)]
    for _round in range(ROUNDS):
        owner = _distances(values, squares, middles).argmin(axis=1)
        mass = np.bincount(owner, weights=weights, minlength=len(middles))
        sums = csr_array((weights, (owner, np.arange(len(values)))), shape=(len(middles), len(values))) @ values
        # A middle that lost its texts, or all that weigh anything, stays where it is.
        middles = np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1.0)[:, None], middles)
    return middles


def _seeds(
    values: NDArray[np.float64], squares: NDArray[np.float64], weights: NDArray[np.float64], n: int
) -> NDArray[np.int64]:
    """Return up to n rows as k-means++ does, by weight times squared distance to those before, but draw nothing.

    Fractions of multiples of the golden ratio, which fill the unit interval evenly, stand for the uniform numbers.
    Always taking the farthest row instead would begin with the oddest texts.
    """
    nearest = np.ones(len(values))
    seeds: list[int] = []
    while len(seeds) < n:
        sums = np.cumsum(weights * nearest)
        if not sums[-1] > 0:
            break
        level = (0.5 + len(seeds) * GOLDEN) % 1.0 * sums[-1]
        seeds.append(int(np.searchsorted(sums, level, side="right")))
        distance = _distances(values, squares, values[seeds[-1:]])[:, 0]
        # What is as good as equal to a middle is no second one.
        distance[distance < SAME] = 0.0
        nearest = distance if len(seeds) == 1 else np.minimum(nearest, distance)
    return np.array(seeds, dtype=np.int64)


def _nearest(
    values: NDArray[np.float64], weights: NDArray[np.float64], middles: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the row nearest to each middle among those it owns, the middles that own most weight first."""
    distances = _distances(values, np.einsum("ij,ij->i", values, values), middles)
    owner = distances.argmin(axis=1)
    own = distances[np.arange(len(values)), owner]
    mass = np.bincount(owner, weights=weights, minlength=len(middles))
    order = np.lexsort((own, owner))
    _owners, first = np.unique(owner[order], return_index=True)
    picks = order[first]
    ranked: NDArray[np.int64] = picks[np.argsort(-mass[owner[picks]], kind="stable")]
    return ranked


def _distances(
    values: NDArray[np.float64], squares: NDArray[np.float64], middles: NDArray[np.float64]
) -> NDArray[np.float64]:
    lengths = np.einsum("ij,ij->i", middles, middles)
    distances: NDArray[np.float64] = np.maximum(squares[:, None] - values @ (2 * middles).T + lengths, 0.0)
    return distances
