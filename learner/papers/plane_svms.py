"""Support vector machines through the origin, one for each of many runs at once."""

import numpy as np
from numpy.typing import NDArray

from privacy.arrays import Array

TOLERANCE = 1e-8
MOST_STEPS = 5_000


def solve_svms(rows: Array, duals: Array, *, cost: float) -> Array:
    r"""Minimise :math:`\frac12\|w\|^2 + C \sum_i \max(0, 1 - \langle s_i, w\rangle)` in the plane, for all runs.

    Each step takes the dual that would move farthest and, among all partners, the one with which it gains most,
    and solves for both within their bounds. Then, as three points in the plane depend on each other, three duals off
    their bounds are moved along their dependency, which leaves w where it is, until one meets a bound.

    References
    ----------
    .. [1] Steinwart, Hush, Scovel, "Training SVMs without offset", 2011: working sets of two for the box alone.
    """
    weights = np.empty((len(rows), 2))
    runs = np.arange(len(rows))
    # The runs come last, so that whatever belongs to one point lies together.
    signed, alpha = np.ascontiguousarray(rows.transpose(2, 1, 0)), np.ascontiguousarray(duals.T)
    curvature = np.maximum(signed[0] ** 2 + signed[1] ** 2, 1e-300)
    for _ in range(MOST_STEPS):
        w = (alpha * signed).sum(axis=1)
        slopes = signed[0] * w[0] + signed[1] * w[1] - 1
        moves = np.abs(np.clip(alpha - slopes / curvature, 0, cost) - alpha) * np.sqrt(curvature)
        done = moves.max(axis=0) <= TOLERANCE
        if done.any():
            weights[runs[done]], duals[runs[done]] = w[:, done].T, alpha[:, done].T
            if done.all():
                return weights
            left = ~done
            runs, signed, alpha, curvature = runs[left], signed[:, :, left], alpha[:, left], curvature[:, left]
            slopes, moves = slopes[:, left], moves[:, left]
        _solve_best_pair(signed, alpha, curvature, slopes, moves.argmax(axis=0), cost)
        if len(alpha) > 2:
            _free_two(signed, alpha, cost)
    raise ArithmeticError(f"{runs.size} machines did not settle within {MOST_STEPS} steps")


def _solve_best_pair(
    signed: Array, alpha: Array, curvature: Array, slopes: Array, first: NDArray[np.intp], cost: float
) -> None:
    each = np.arange(alpha.shape[1])
    point, own, slope = signed[:, first, each], curvature[first, each], slopes[first, each]
    product = signed[0] * point[0] + signed[1] * point[1]
    low, high = -alpha[first, each], cost - alpha[first, each]
    lows, highs = -alpha, cost - alpha
    best_gain = np.full(alpha.shape, -np.inf)
    best = np.zeros((2, *alpha.shape))

    def offer(a: Array, b: Array) -> None:
        gain = -(0.5 * own * a * a + 0.5 * curvature * b * b + product * a * b + slope * a + slopes * b)
        better = gain > best_gain
        np.copyto(best_gain, gain, where=better)
        np.copyto(best[0], a, where=better)
        np.copyto(best[1], b, where=better)

    for edge in (low, high):
        offer(np.broadcast_to(edge, alpha.shape), np.clip(-(slopes + product * edge) / curvature, lows, highs))
    for edges in (lows, highs):
        offer(np.clip(-(slope + product * edges) / own, low, high), edges)
    determinant = own * curvature - product * product
    determinant[determinant <= 1e-12 * own * curvature] = np.inf
    a = (product * slopes - curvature * slope) / determinant
    b = (product * slope - own * slopes) / determinant
    inside = (a >= low) & (a <= high) & (b >= lows) & (b <= highs) & np.isfinite(determinant)
    offer(np.where(inside, a, 0.0), np.where(inside, b, 0.0))
    # With itself as a partner a point would move twice.
    best_gain[first, each] = -np.inf
    if len(alpha) == 1:
        alpha += np.clip(-slopes / curvature, lows, highs)
        return
    second = best_gain.argmax(axis=0)
    moved, partner = best[0, second, each], best[1, second, each]
    alpha[first, each] = np.clip(alpha[first, each] + moved, 0, cost)
    alpha[second, each] = np.clip(alpha[second, each] + partner, 0, cost)


def _free_two(signed: Array, alpha: Array, cost: float) -> None:
    """Bring one of the three duals farthest from their bounds to a bound where all three are off, to no loss."""
    inner = np.minimum(alpha, cost - alpha)
    three = np.argpartition(inner, -3, axis=0)[-3:]
    open_runs = np.flatnonzero(np.take_along_axis(inner, three, axis=0).min(axis=0) > 0)
    if not open_runs.size:
        return
    three = three[:, open_runs]
    a, b, c = (signed[:, three[place], open_runs] for place in range(3))
    along = np.stack([b[0] * c[1] - b[1] * c[0], c[0] * a[1] - c[1] * a[0], a[0] * b[1] - a[1] * b[0]])
    # The objective falls by the sum of the duals while w stays.
    along *= np.where(along.sum(axis=0) < 0, -1.0, 1.0)
    part = alpha[three, open_runs]
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(along > 0, (cost - part) / along, np.where(along < 0, -part / along, np.inf))
    length = room.min(axis=0)
    moved = np.where(np.isfinite(length), length, 0.0) * along
    alpha[three, open_runs] = np.clip(part + moved, 0, cost)
