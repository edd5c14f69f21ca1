"""Sums of rows by class and of their products, released with exact discrete noise."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.sums import SumsEvent
from privacy.mechanisms.discrete import LARGEST_COUNT, DiscreteGaussian
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.session import Measurement, Queries, public_seed, rounded
from privacy.mechanisms.shortening import shortened_rows

# Entries of rows become multiples of 2**-13 of the bound.
STEPS = 2**13
# Sums of this many products are still exact in float64.
MOST_ROWS = 2**26
# Noise spans at least this many steps of its grid, which is what the event charges the grid for.
LEAST_SCALE = 2**32

FloatRows = NDArray[np.floating]
Members = NDArray[np.bool_]


class ReleasedSums(NamedTuple):
    """Noisy sums of one release: `moments` of x x^T, shape (d, d), or None, and `class_sums`, shape (K, d)."""

    moments: NDArray[np.float64] | None
    class_sums: NDArray[np.float64]


def exact_sums(
    blocks: Iterable[tuple[FloatRows, Members]], event: SumsEvent
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sums in whole steps: products of shape (d, d) in squared steps, class sums of shape (K, d).

    Products of whole numbers below 2**53 and their sums have no rounding error in whatever order a library adds them.
    """
    d, count = event.dimension, 0
    products, sums = np.zeros((d, d)), np.zeros((event.n_classes, d))
    for rows, members in blocks:
        if rows.shape[1:] != (d,) or members.shape != (len(rows), event.n_classes):
            raise ValueError(f"rows must have {d} columns and members {event.n_classes}, got {members.shape}")
        if (members.sum(axis=1) > event.labels_per_record).any():
            raise ValueError(f"a record has at most {event.labels_per_record} labels")
        steps = shortened_rows(rows, norm_bound=event.norm_bound, steps=STEPS)
        count += len(steps)
        if count > MOST_ROWS:
            raise ValueError(f"at most {MOST_ROWS} rows can be summed exactly")
        if event.moment_sigma:
            products += steps.T @ steps
        sums += members.T.astype(np.float64) @ steps
    return products.astype(np.int64), sums.astype(np.int64)


def release_sums(blocks: Iterable[tuple[FloatRows, Members]], event: SumsEvent, *, rng: RandomSource) -> ReleasedSums:
    """Return all sums with noise.

    A block has rows of shape (n, d), constant column included, of norm at most ``event.norm_bound``, and the classes
    each belongs to, boolean of shape (n, K).
    """
    return noisy_sums(*exact_sums(blocks, event), event, parts=1, rng=rng)


def sum_queries(blocks: Iterable[tuple[FloatRows, Members]], event: SumsEvent, *, rng: RandomSource) -> Queries:
    """Return the queries of one release of sums: `moments` above their diagonal and `class_sums`; and a public `seed`.

    Parameters are those of `release_sums`.
    """
    queries = queries_of(release_sums(blocks, event, rng=rng), event)
    return {**queries, "seed": lambda: public_seed(rng)}


def queries_of(released: ReleasedSums, event: SumsEvent) -> Queries:
    """Return the queries that sums which were released answer."""

    def moments() -> Measurement:
        if released.moments is None:
            raise ValueError("second moments are not paid for")
        upper = released.moments[np.triu_indices(event.dimension)]
        return Measurement("moments", event.norm_bound**2, event.moment_sigma, rounded(upper))

    def class_sums() -> Measurement:
        moved = event.norm_bound * math.sqrt(event.labels_per_record)
        return Measurement("class_sums", moved, event.class_sigma, rounded(released.class_sums))

    return {"moments": moments, "class_sums": class_sums}


def noisy_sums(
    products: NDArray[np.int64], sums: NDArray[np.int64], event: SumsEvent, *, parts: int, rng: RandomSource
) -> ReleasedSums:
    """Return exact sums, in whole parts of steps, with the noise of the event; `parts` is a power of two."""
    d, moments = event.dimension, None
    if event.moment_sigma:
        unit = (event.norm_bound / STEPS) ** 2 / parts
        moments = np.zeros((d, d))
        beside = np.triu_indices(d, 1)
        moments[np.diag_indices(d)] = released_steps(products.diagonal(), unit, event.moment_sigma, rng)
        # One unit in the last place more than the root of one half, never less.
        narrow = math.nextafter(event.moment_sigma * math.sqrt(0.5), math.inf)
        moments[beside] = released_steps(products[beside], unit, narrow, rng)
        moments += np.triu(moments, 1).T
    unit = event.norm_bound / STEPS / parts
    class_sums = released_steps(sums.ravel(), unit, event.class_sigma, rng).reshape(sums.shape)
    return ReleasedSums(moments, class_sums)


def released_steps(steps: NDArray[np.int64], unit: float, sigma: float, rng: RandomSource) -> NDArray[np.float64]:
    """Return steps of size `unit` with noise of `sigma`, on a grid finer by a power of two where that is needed."""
    finer = 2 ** max(0, math.ceil(math.log2(LEAST_SCALE * unit / sigma)))
    scale = math.nextafter(sigma / unit, math.inf) * finer
    if steps.size and int(np.abs(steps).max()) > LARGEST_COUNT // finer:
        raise ValueError(f"sums do not fit on a grid of {finer} parts of {unit}")
    noisy = DiscreteGaussian(scale).release(steps * finer, rng=rng).astype(np.float64)
    values: NDArray[np.float64] = noisy * (unit / finer)
    return values
