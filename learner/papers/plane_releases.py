"""Releases of the machines in the plane, and a sound way to choose whom to ask."""

import math

import numpy as np
from numpy.typing import NDArray

from learner.papers.plane_points import Constellation
from learner.papers.plane_svms import solve_svms
from privacy.accounting.training import erm_sensitivity
from privacy.arrays import Array
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.top_c import select_top_c

# All of the paper's constants for its linear kernel: Lipschitz constant and kernel bound.
PUBLISHED_KERNEL_BOUND = 1.0
BLOCK_RUNS = 1_000


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


def gamma_accuracy(points: Constellation, weights: Array, scale: float, rng: np.random.Generator) -> Array:
    norms, turns = rng.gamma(2, scale, size=len(weights)), rng.uniform(0, 2 * np.pi, size=len(weights))
    return plane_accuracy(points, weights + norms[:, None] * np.stack([np.cos(turns), np.sin(turns)], axis=1))


def plane_accuracy(points: Constellation, weights: Array) -> Array:
    shares: Array = (weights @ points.signed.T > 0).mean(axis=1)
    return shares


def ask_top_c(
    points: Constellation,
    starts: NDArray[np.intp],
    *,
    picks: int,
    scale: float,
    reach: float,
    cost: float,
    rng: np.random.Generator,
) -> NDArray[np.intp]:
    """Choose `picks` records of each run's pool by the project's mechanism and the model of the public starts."""
    n_runs, n_points = len(starts), len(points.X)
    rows = points.signed[starts]
    first = solve_svms(rows, np.zeros((n_runs, 2)), cost=cost)
    distances = np.abs(first @ points.X.T) / np.linalg.norm(first, axis=1, keepdims=True)
    scores = np.clip(1 - distances / reach, 0, 1)
    noise = SimulationRandom(int(rng.integers(2**32)))
    chosen = np.empty((n_runs, picks), dtype=np.intp)
    for run in range(n_runs):
        pool = np.delete(np.arange(n_points), starts[run])
        if scale > 0:
            chosen[run] = pool[select_top_c(scores[run, pool], picks=picks, scale=scale, rng=noise)]
        else:
            chosen[run] = rng.choice(pool, size=picks, replace=False)
    return chosen


def train_on(points: Constellation, labelled: NDArray[np.intp], *, cost: float) -> Array:
    weights = np.empty((len(labelled), 2))
    for start in range(0, len(labelled), BLOCK_RUNS):
        part = points.signed[labelled[start : start + BLOCK_RUNS]]
        weights[start : start + BLOCK_RUNS] = solve_svms(part, np.zeros(part.shape[:2]), cost=cost)
    return weights
