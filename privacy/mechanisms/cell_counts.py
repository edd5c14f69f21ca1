"""How many records lie in each of some public cells, released with exact discrete noise."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.sums import CellCountsEvent
from privacy.mechanisms.discrete import DiscreteLaplace
from privacy.mechanisms.randomness import RandomSource

NO_CELL = -1


def release_cell_counts(
    blocks: Iterable[NDArray[np.int64]], event: CellCountsEvent, *, rng: RandomSource
) -> NDArray[np.int64]:
    """Return noisy counts, shape (event.cells,); they may be negative.

    Parameters
    ----------
    blocks : iterable of ndarray of int64
        The cell of each record, from 0, or `NO_CELL`; it must hang on that record alone.
    event : CellCountsEvent
        The noise and its price.
    rng : RandomSource
        Source of the noise; exact only if secure.

    Raises
    ------
    ValueError
        If there is no such cell.
    """
    counts = np.zeros(event.cells, dtype=np.int64)
    for cells in blocks:
        if cells.size and not (cells.min() >= NO_CELL and cells.max() < event.cells):
            raise ValueError(f"cells must lie in [0, {event.cells}), or be {NO_CELL} for none")
        counts += np.bincount(cells[cells != NO_CELL], minlength=event.cells)
    return DiscreteLaplace(event.noise_scale).release(counts, rng=rng)
