"""Spread a batch over what there is to ask about: weighted k-means, and the candidate nearest to each middle."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

# More candidates than this are cut to the heaviest: a batch of some dozens is as well spread over them.
MOST_CLUSTERED = 20_000
# So many rows stand for all where neighbours are looked for, and so many for all that was asked.
MOST_COMPARED = 5_000
# Rows whose distances to those are held at once: 40 MB.
AT_ONCE = 1_000
NEIGHBOURS = 50
# Texts closer together than this share of what is usual count as no closer.
CLOSEST = 0.25
ROUNDS = 12
GOLDEN = (5**0.5 - 1) / 2
# Squared distance below which two texts are one, above what rounding makes of equal rows.
SAME = 1e-9


def spread_batch(
    rows: NDArray[np.floating], weights: NDArray[np.float64], n: int, *, asked: NDArray[np.floating] | None = None
) -> NDArray[np.int64]:
    """Choose rows that stand for all the others but those near to one that was asked before.

    Parameters
    ----------
    rows : ndarray of floats, shape (m, d)
        Features of the candidates.
    weights : ndarray of float64, shape (m,)
        How much each counts, >= 0; middles are drawn towards heavy ones, and to where texts are dense.
    n : int
        How many to choose, 0 <= n <= m.
    asked : ndarray of floats, shape (k, d), optional
        Features of what was asked before: middles that stay where they are and that nothing is chosen for.

    Returns
    -------
    ndarray of int64, shape (n,)
        Distinct places in `rows`, those of the heaviest clusters first. The same arguments give the same places:
        nothing is drawn.

    References
    ----------
    .. [1] Zhdanov, "Diverse mini-batch active learning", 2019, section 3.
    .. [2] Hacohen, Dekel, Weinshall, "Active learning on a budget: opposite strategies suit high and low budgets"
       (TypiClust), ICML 2022, equation 4 and section 3.2: density among the nearest, clusters nobody asked of.
    """
    if n == 0:
        return np.empty(0, dtype=np.int64)
    heaviest = np.argsort(-weights, kind="stable")[: max(MOST_CLUSTERED, n)]
    values = np.asarray(rows[heaviest], dtype=np.float64)
    heavy = weights[heaviest]
    # Where nothing weighs anything all count alike.
    heavy = heavy / heavy.max() if heavy.max() > 0 else np.ones(len(heavy))
    before = np.empty((0, values.shape[1])) if asked is None else np.asarray(_some(asked), dtype=np.float64)
    # Products this small are slower shared among threads than alone.
    with threadpool_limits(limits=1, user_api="blas"):
        squares = np.einsum("ij,ij->i", values, values)
        covered = np.full(len(values), np.inf)
        if len(before):
            for part in _parts(len(values)):
                covered[part] = _distances(values[part], squares[part], before).min(axis=1)
            covered[covered < SAME] = 0.0
        heavy = heavy * _density(values, squares) ** 2
        middles = _middles(values, squares, heavy, covered, n)
        picks = _nearest(values, squares, heavy, covered, middles)
    # Fewer different texts than questions: the heaviest of the rest.
    rest = np.setdiff1d(np.arange(len(values)), picks, assume_unique=True)[: n - len(picks)]
    chosen: NDArray[np.int64] = heaviest[np.concatenate([picks, rest])]
    return chosen


def _some(rows: NDArray[np.floating]) -> NDArray[np.floating]:
    return rows[:: -(-len(rows) // MOST_COMPARED) or 1]


def _parts(rows: int) -> Iterator[slice]:
    return (slice(start, start + AT_ONCE) for start in range(0, rows, AT_ONCE))


def _density(values: NDArray[np.float64], squares: NDArray[np.float64]) -> NDArray[np.float64]:
    compared: NDArray[np.float64] = np.asarray(_some(values), dtype=np.float64)
    near = min(NEIGHBOURS, len(values) // 20) * len(compared) // len(values)
    if near < 1:
        return np.ones(len(values))
    means = np.empty(len(values))
    for part in _parts(len(values)):
        # One of them may be the row itself, at no distance.
        nearest = np.partition(_distances(values[part], squares[part], compared), near, axis=1)[:, : near + 1]
        means[part] = np.sqrt(nearest).mean(axis=1)
    usual = float(np.median(means))
    return usual / np.maximum(means, CLOSEST * usual) if usual > 0 else np.ones(len(values))


def _middles(
    values: NDArray[np.float64],
    squares: NDArray[np.float64],
    weights: NDArray[np.float64],
    covered: NDArray[np.float64],
    n: int,
) -> NDArray[np.float64]:
    """Return at most n middles after some rounds of Lloyd's algorithm; `covered` is how far what was asked is."""
    middles = values[_seeds(values, squares, weights, covered, n)]
    for _round in range(ROUNDS if len(middles) else 0):
        distances = _distances(values, squares, middles)
        owner = distances.argmin(axis=1)
        free = np.flatnonzero(distances[np.arange(len(values)), owner] < covered)
        mass = np.bincount(owner[free], weights=weights[free], minlength=len(middles))
        shape = (len(middles), len(values))
        sums = csr_array((weights[free], (owner[free], free)), shape=shape) @ values
        # A middle that lost its texts, or all that weigh anything, stays where it is.
        middles = np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1.0)[:, None], middles)
    return middles


def _seeds(
    values: NDArray[np.float64],
    squares: NDArray[np.float64],
    weights: NDArray[np.float64],
    covered: NDArray[np.float64],
    n: int,
) -> NDArray[np.int64]:
    """Return up to n rows as k-means++ does, by weight times squared distance to those before, but draw nothing.

    Fractions of multiples of the golden ratio, which fill the unit interval evenly, stand for the uniform numbers.
    Always taking the farthest row instead would begin with the oddest texts.
    """
    nearest = covered
    seeds: list[int] = []
    while len(seeds) < n:
        sums = np.cumsum(weights * np.where(np.isfinite(nearest), nearest, 1.0))
        if not sums[-1] > 0:
            break
        level = (0.5 + len(seeds) * GOLDEN) % 1.0 * sums[-1]
        seeds.append(int(np.searchsorted(sums, level, side="right")))
        distance = _distances(values, squares, values[seeds[-1:]])[:, 0]
        # What is as good as equal to a middle is no second one.
        distance[distance < SAME] = 0.0
        nearest = np.minimum(nearest, distance)
    return np.array(seeds, dtype=np.int64)


def _nearest(
    values: NDArray[np.float64],
    squares: NDArray[np.float64],
    weights: NDArray[np.float64],
    covered: NDArray[np.float64],
    middles: NDArray[np.float64],
) -> NDArray[np.int64]:
    if not len(middles):
        return np.empty(0, dtype=np.int64)
    distances = _distances(values, squares, middles)
    owner = distances.argmin(axis=1)
    own = distances[np.arange(len(values)), owner]
    mass = np.bincount(owner, weights=weights * (own < covered), minlength=len(middles))
    order = np.lexsort((own, owner))
    _owners, first = np.unique(owner[order], return_index=True)
    picks = order[first]
    return picks[np.argsort(-mass[owner[picks]], kind="stable")]


def _distances(
    values: NDArray[np.float64], squares: NDArray[np.float64], middles: NDArray[np.float64]
) -> NDArray[np.float64]:
    lengths = np.einsum("ij,ij->i", middles, middles)
    distances: NDArray[np.float64] = np.maximum(squares[:, None] - values @ (2 * middles).T + lengths, 0.0)
    return distances
