"""Public cells of a feature space: each record is in the one whose direction it points along most, or in none."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privacy.mechanisms.cell_counts import NO_CELL

CELLS = 64
# Public and the same for everybody, so that a cell is a function of a record and of nothing else.
DIRECTIONS_SEED = 20_261_126
# Whole numbers of at most so much, so that products and their sums are exact in float64 in whatever order a library
# adds them: a record's cell must not hang on its neighbours in a block.
ROW_STEPS, DIRECTION_STEPS = 2**20, 2**10


@lru_cache(maxsize=8)
def directions(dimension: int) -> NDArray[np.float64]:
    """Return public directions in whole steps, shape (CELLS, dimension): uniform on the sphere, fitted on nothing."""
    drawn = np.random.default_rng(DIRECTIONS_SEED).standard_normal((CELLS, dimension))
    lengths = np.linalg.norm(drawn, axis=1, keepdims=True)
    steps: NDArray[np.float64] = np.rint(drawn / lengths * DIRECTION_STEPS)
    return steps


def record_cells(values: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return the cell of each row of features, shape (n,); of a row of zeros, as empty slots have, none.

    Parameters
    ----------
    values : ndarray of floats, shape (n, d)
        Features; what is outside [-1, 1] counts as its end, and what is no number as nothing.
    """
    whole = np.trunc(np.clip(np.nan_to_num(np.asarray(values, dtype=np.float64)), -1.0, 1.0) * ROW_STEPS)
    along = whole @ directions(whole.shape[1]).T
    return np.where(whole.any(axis=1), along.argmax(axis=1), NO_CELL)
