"""Stream a linear model over a feature file, block by block, at the speed of memory."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel

# Large enough for full speed, small enough that all temporaries stay within 64 MiB.
BLOCK_BYTES = 8 * 2**20


def default_block_rows(dimension: int, n_outputs: int) -> int:
    """Return how many rows make a block whose copies and outputs stay within a few `BLOCK_BYTES`."""
    return max(256, BLOCK_BYTES // (4 * (dimension + 2 * n_outputs)))


def score_blocks(
    X: NDArray[np.float32], model: LinearModel, *, candidates: NDArray[np.int64], block_rows: int | None = None
) -> Iterator[NDArray[np.float32]]:
    """Yield float32 decisions, (rows,) or (rows, n_classes), in order, block by block, each from its own row alone."""
    if model.dimension != X.shape[1]:
        raise ValueError(f"model has {model.dimension} weights a class, the features have {X.shape[1]} columns")
    weights, offset = model.coef.T.astype(np.float32), model.intercept.astype(np.float32)
    if len(model.coef) == 1:
        weights, offset = weights[:, 0], offset[0]
    step = default_block_rows(X.shape[1], len(model.coef)) if block_rows is None else block_rows
    for start in range(0, len(candidates), step):
        rows = candidates[start : start + step]
        # Consecutive rows are read in place; only scattered ones are gathered into a copy.
        consecutive = int(rows[-1]) - int(rows[0]) == len(rows) - 1 and bool((np.diff(rows) == 1).all())
        block = X[int(rows[0]) : int(rows[-1]) + 1] if consecutive else X[rows]
        values: NDArray[np.float32] = block @ weights
        values += offset
        yield values


def boundary_distances(values: NDArray[np.float32], coef: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return the distance of each record to the nearest decision boundary, >= 0, shape (rows,).

    Parameters
    ----------
    values : ndarray of float32, shape (rows,) or (rows, n_classes)
        Decision values from `score_blocks`.
    coef : ndarray of shape (1, d) or (n_classes, d)
        The weights they came from.

    Notes
    -----
    Two classes: :math:`|\langle w, x\rangle + b| / \lVert w\rVert`, and 0 for w = 0. More: the smallest
    :math:`(v_a - v_j) / \lVert w_a - w_j\rVert` between the leading class a and any other j.
    """
    if values.ndim == 1:
        norm = float(np.linalg.norm(coef))
        return np.abs(values.astype(np.float64)) / norm if norm > 0 else np.zeros(len(values))
    apart = np.linalg.norm(coef[:, None, :] - coef[None, :, :], axis=2)
    wide = values.astype(np.float64)
    leader = wide.argmax(axis=1)
    gaps = wide.max(axis=1, keepdims=True) - wide
    spans = apart[leader]
    distances = np.divide(gaps, spans, out=np.zeros_like(gaps), where=spans > 0)
    distances[np.arange(len(wide)), leader] = np.inf
    nearest: NDArray[np.float64] = distances.min(axis=1)
    return nearest
