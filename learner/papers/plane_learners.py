"""The pool-based learner of section V for many runs at once: rank, flip coins, ask, train."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from learner.papers.plane_points import Constellation
from learner.papers.plane_svms import solve_svms
from privacy.arrays import Array

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
