"""Support vector machines through the origin, one for each of many runs at once."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
TOLERANCE = 1e-9
MOST_SWEEPS = 20_000
# Two nearly parallel points on the margin make descent crawl, and the plane lets them be solved for.
SWEEPS_BETWEEN_SOLVING = 4


def solve_svms(rows: Array, counts: NDArray[np.intp], duals: Array, *, cost: float) -> Array:
    r"""Minimise :math:`\frac12\|w\|^2 + C \sum_i \max(0, 1 - \langle s_i, w\rangle)` for all runs by dual descent.

    Parameters
    ----------
    rows : ndarray of shape (n_runs, n_slots, 2)
        Labelled points times their labels; slots beyond a run's count are ignored.
    counts : ndarray of int, shape (n_runs,)
        How many slots each run uses.
    duals : ndarray of shape (n_runs, n_slots)
        Where to start, within [0, C], overwritten with the solution.
    cost : float
        C > 0.

    Returns
    -------
    ndarray of shape (n_runs, 2)
        Weights; a run is finished when no dual moves by more than 1e-9, or when the two duals that are off their
        bounds, solved for, meet every condition of the minimum.

    Raises
    ------
    ArithmeticError
        If a run is not finished after 20,000 sweeps.

    References
    ----------
    .. [1] Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", 2008, Algorithm 1.
    """
    used = np.arange(rows.shape[1]) < counts[:, None]
    duals *= used
    weights: Array = np.einsum("rs,rsd->rd", duals, rows)
    runs = np.arange(len(rows))
    for sweep in range(1, MOST_SWEEPS + 1):
        width = int(counts[runs].max())
        moved = _sweep(rows, duals, weights, used, runs, width, cost)
        runs = runs[moved > TOLERANCE]
        if runs.size and width > 1 and sweep % SWEEPS_BETWEEN_SOLVING == 0:
            runs = runs[~_solve_pairs(rows, duals, weights, used, runs, width, cost)]
        if not runs.size:
            return weights
    raise ArithmeticError(f"{runs.size} machines did not settle within {MOST_SWEEPS} sweeps")


def _sweep(
    rows: Array,
    duals: Array,
    weights: Array,
    used: NDArray[np.bool_],
    runs: NDArray[np.intp],
    width: int,
    cost: float,
) -> Array:
    """Update every dual of the given runs once and return how far the farthest of each run moved."""
    signed = np.ascontiguousarray(rows[runs, :width].transpose(1, 2, 0))
    part, live, w = np.ascontiguousarray(duals[runs, :width].T), used[runs, :width].T, weights[runs].T.copy()
    curvature = np.where(live, np.einsum("sdr,sdr->sr", signed, signed), np.inf)
    farthest = np.zeros(len(runs))
    for slot in range(width):
        point = signed[slot]
        after = np.clip(part[slot] - (point[0] * w[0] + point[1] * w[1] - 1) / curvature[slot], 0, cost)
        step = after - part[slot]
        part[slot] = after
        w += step * point
        np.maximum(farthest, np.abs(step), out=farthest)
    duals[runs, :width], weights[runs] = part.T, w.T
    return farthest


def _solve_pairs(
    rows: Array,
    duals: Array,
    weights: Array,
    used: NDArray[np.bool_],
    runs: NDArray[np.intp],
    width: int,
    cost: float,
) -> NDArray[np.bool_]:
    """Put the two duals farthest from their bounds where both margins are one; say where that is the minimum."""
    each = np.arange(len(runs))
    signed, live = rows[runs, :width], used[runs, :width]
    part = np.where(live, duals[runs, :width], 0.0)
    pair = np.argpartition(-np.minimum(part, cost - part), 1, axis=1)[:, :2]
    part = np.where(part > cost / 2, cost, 0.0)
    part[each[:, None], pair] = 0.0
    base = np.einsum("rs,rsd->rd", part, signed)
    first, second = signed[each, pair[:, 0]], signed[each, pair[:, 1]]
    area = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    area = np.where(np.abs(area) > 1e-12, area, np.inf)
    w = np.stack([second[:, 1] - first[:, 1], first[:, 0] - second[:, 0]], axis=1) / area[:, None]
    rest = w - base
    part[each, pair[:, 0]] = (rest[:, 0] * second[:, 1] - rest[:, 1] * second[:, 0]) / area
    part[each, pair[:, 1]] = (first[:, 0] * rest[:, 1] - first[:, 1] * rest[:, 0]) / area
    margins = np.einsum("rsd,rd->rs", signed, w)
    fits = (part >= 0) & (part <= cost)
    fits &= ((part < cost) | (margins <= 1 + TOLERANCE)) & ((part > 0) | (margins >= 1 - TOLERANCE))
    solved: NDArray[np.bool_] = (fits | ~live).all(axis=1) & np.isfinite(area)
    duals[runs[solved], :width], weights[runs[solved]] = part[solved], w[solved]
    return solved
