"""Learners, machines and releases in the plane, for many runs at once."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from learner.papers.experiment import Json
from privacy.accounting.training import erm_sensitivity
from privacy.arrays import Array

# How near to the separating line points of the three data sets may lie.
GAPS = {"wide": 0.4, "middle": 0.2, "narrow": 0.1}
POINTS: Json = {"points": 120, "radius": 4.0, "points_seed": 1, "cost": 1.0, "most_queries": 118}


@dataclass(frozen=True, slots=True)
class Constellation:
    """Points of two classes on either side of a line through the origin."""

    X: Array
    signs: Array
    direction: Array

    @property
    def signed(self) -> Array:
        """Each point times its label: a hypothesis is right about it iff their product is positive."""
        return self.X * self.signs[:, None]

    @property
    def norm_bound(self) -> float:
        return float(np.linalg.norm(self.X, axis=1).max())

    @property
    def turns(self) -> Array:
        r"""Angle in (0, pi), measured from the labelling hypothesis, at which each point's line is crossed.

        A labelled point keeps the hypotheses with angles in (turn - pi, turn), so the version space of a set of
        labelled points is the arc from their largest turn minus pi to their smallest.
        """
        across = np.array([-self.direction[1], self.direction[0]])
        signed = self.signed
        turned: Array = np.pi / 2 + np.arctan2(signed @ across, signed @ self.direction)
        return turned


def draw_constellation(*, points: int, radius: float, gap: float, rng: np.random.Generator) -> Constellation:
    if points < 2 or points % 2:
        raise ValueError(f"points must be even and >= 2, got {points}")
    if not 0 <= gap < radius:
        raise ValueError(f"gap must lie in [0, {radius}), got {gap}")
    angle = rng.uniform(0, 2 * np.pi)
    direction = np.array([np.cos(angle), np.sin(angle)])
    signs = np.repeat([1.0, -1.0], points // 2)
    found = np.empty((0, 2))
    while len(found) < points:
        square = rng.uniform(-radius, radius, size=(8 * points, 2))
        inside = np.linalg.norm(square, axis=1) <= radius
        found = np.vstack([found, square[inside & (square @ direction >= gap)]])
    return Constellation(found[:points] * signs[:, None], signs, direction)


def constellation(settings: Json, gap: float) -> Constellation:
    rng = np.random.default_rng(settings["points_seed"])
    return draw_constellation(points=settings["points"], radius=settings["radius"], gap=gap, rng=rng)


Order = Literal["ranked", "random"]


@dataclass(frozen=True, slots=True)
class Learned:
    queries: NDArray[np.intp]
    finished: NDArray[np.bool_]
    weights: Array
    labelled: NDArray[np.intp]


def coin(epsilon: float) -> float:
    return float(1 / (1 + np.exp(-epsilon)))


def draw_starts(signs: Array, runs: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return one random point of each class for every run, shape (runs, 2)."""
    sides = [np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)]
    return np.stack([side[rng.integers(0, len(side), size=runs)] for side in sides], axis=1)


def learn_until_separated(
    points: Constellation,
    starts: NDArray[np.intp],
    *,
    probability: float,
    order: Order = "ranked",
    cost: float,
    most_queries: int,
    rng: np.random.Generator,
) -> Learned:
    """Ask for one label at a time until the machine separates all points, in every run.

    UNSOUND, for reproduction only: the ranking follows a clean machine, so one record moves all later choices.

    References
    ----------
    .. [1] Rane, Brito, "A version space perspective on differentially private pool-based active learning", 2019,
       section V.
    """
    n_runs, n_points, signed = len(starts), len(points.X), points.signed
    slots = 2 + min(most_queries, n_points - 2)
    labelled = np.full((n_runs, slots), -1)
    labelled[:, :2] = starts
    rows, duals = np.zeros((n_runs, slots, 2)), np.zeros((n_runs, slots))
    rows[:, :2] = signed[starts]
    counts, weights = np.full(n_runs, 2), np.zeros((n_runs, 2))
    finished = np.zeros(n_runs, dtype=np.bool_)
    active = np.arange(n_runs)
    for filled in range(2, slots + 1):
        part = duals[active, :filled]
        weights[active] = solve_svms(rows[active, :filled], part, cost=cost)
        duals[active, :filled] = part
        finished[active] = (weights[active] @ signed.T > 0).all(axis=1)
        active = active[~finished[active]]
        if filled == slots or not active.size:
            break
        keys = np.abs(weights[active] @ points.X.T) if order == "ranked" else rng.random((len(active), n_points))
        asked = _flip_down(keys, labelled[active, :filled], probability, rng)
        labelled[active, filled] = asked
        rows[active, filled] = signed[asked]
        counts[active] += 1
    return Learned(counts - 2, finished, weights, labelled)


def _flip_down(
    keys: Array, labelled: NDArray[np.intp], probability: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    each = np.arange(len(keys))
    np.put_along_axis(keys, labelled, np.inf, axis=1)
    left = keys.shape[1] - labelled.shape[1]
    rank = (rng.geometric(probability, size=len(keys)) - 1) % left
    deepest = int(rank.max())
    # Few ranks are ever reached, so sorting all of them would be waste.
    near = np.argpartition(keys, deepest, axis=1)[:, : deepest + 1]
    ranked = np.take_along_axis(near, np.argsort(np.take_along_axis(keys, near, axis=1), axis=1), axis=1)
    chosen: NDArray[np.intp] = ranked[each, rank]
    return chosen


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


# All of the paper's constants for its linear kernel: Lipschitz constant and kernel bound.
PUBLISHED_KERNEL_BOUND = 1.0


def published_scale(labels: NDArray[np.intp], epsilon: float, cost: float) -> Array:
    r"""Return the scale :math:`4LC\kappa\sqrt d / (\varepsilon_m n_t)` of the source, for each run.

    UNSOUND with the unscaled C of its solver: the sensitivity of that machine does not fall with the labels.

    References
    ----------
    .. [1] Rane, Brito 2019, equation 5.
    """
    return 4 * cost * PUBLISHED_KERNEL_BOUND * math.sqrt(2) / (epsilon * labels.astype(np.float64))


def true_scale(epsilon: float, cost: float, norm_bound: float) -> float:
    r"""Return that scale for the machine's sensitivity, :math:`2C\kappa` in L2, :math:`\sqrt d` that in L1."""
    return math.sqrt(2) * erm_sensitivity(0, 1 / cost, norm_bound, form="sum", adjacency="replace") / epsilon


def laplace_accuracy(points: Constellation, weights: Array, scale: Array | float, rng: np.random.Generator) -> Array:
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), len(weights))
    return plane_accuracy(points, weights + rng.laplace(size=weights.shape) * scales[:, None])


def plane_accuracy(points: Constellation, weights: Array) -> Array:
    shares: Array = (weights @ points.signed.T > 0).mean(axis=1)
    return shares
