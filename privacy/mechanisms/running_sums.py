"""Running sums: with every batch the sums of all batches so far are released, at the price of a few."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.sums import PARTS, RunningSumsEvent
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.session import Queries
from privacy.mechanisms.sums import FloatRows, Members, ReleasedSums, exact_sums, noisy_sums, queries_of

# Sums of this many rows, weighted in parts, still fit 63 bits.
MOST_ROWS = 2**20


def weighted_sums(
    batches: Sequence[tuple[FloatRows, Members]], event: RunningSumsEvent
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sums of an epoch's batches, oldest first, each with its coefficient, in whole parts of steps."""
    if not 1 <= len(batches) <= event.updates:
        raise ValueError(f"an epoch has 1 to {event.updates} batches, got {len(batches)}")
    if sum(len(rows) for rows, _ in batches) > MOST_ROWS:
        raise ValueError(f"at most {MOST_ROWS} rows can be summed exactly")
    d = event.sums.dimension
    products, sums = np.zeros((d, d), dtype=np.int64), np.zeros((event.sums.n_classes, d), dtype=np.int64)
    for part, batch in zip(event.coefficients, reversed(batches), strict=False):
        of_rows, of_classes = exact_sums([batch], event.sums)
        products += part * of_rows
        sums += part * of_classes
    return products, sums


def release_running_sums(
    batches: Sequence[tuple[FloatRows, Members]], event: RunningSumsEvent, *, rng: RandomSource
) -> ReleasedSums:
    """Return what is released when the newest of `batches` is full; `RunningTotal` makes sums of all of it.

    `batches` are all of the epoch, oldest first, as `release_sums` takes them; each may be empty.
    """
    products, sums = weighted_sums(batches, event)
    return noisy_sums(products, sums, event.sums, parts=PARTS, rng=rng)


def running_queries(
    batches: Sequence[tuple[FloatRows, Members]], event: RunningSumsEvent, *, rng: RandomSource
) -> Queries:
    """Return the queries of one release of running sums, as `release_running_sums` makes it."""
    return queries_of(release_running_sums(batches, event, rng=rng), event.sums)
