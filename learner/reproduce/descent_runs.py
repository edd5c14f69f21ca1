"""Noisy online gradient descent for many runs at once: gradients in full, or one answer a user."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Array = NDArray[np.float64]
BLOCK_STEPS = 256


@dataclass(frozen=True, slots=True)
class Users:
    r"""Streams of users with losses :math:`f_t(w) = \ln(1 + e^{-\langle a_t, w\rangle})`, 1-Lipschitz and convex.

    Attributes
    ----------
    rows : ndarray of shape (n_streams, horizon, dimension)
        Each user's row of norm 1 times the label -1 or +1.
    """

    rows: Array

    def first(self, horizon: int) -> "Users":
        """Return the streams cut to their first users."""
        return Users(self.rows[:, :horizon])

    def best_losses(self, radius: float) -> Array:
        """Return the smallest total loss of fixed weights in the ball, shape (n_streams,)."""
        return np.array([best_total_loss(stream, radius) for stream in self.rows])


def draw_users(*, streams: int, horizon: int, dimension: int, truth_norm: float, rng: np.random.Generator) -> Users:
    """Draw rows uniformly on the unit sphere with labels from one logistic model a stream."""
    rows = rng.standard_normal((streams, horizon, dimension))
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    truth = rng.standard_normal((streams, dimension, 1))
    truth *= truth_norm / np.linalg.norm(truth, axis=1, keepdims=True)
    signs = np.where(rng.random((streams, horizon, 1)) < expit(rows @ truth), 1.0, -1.0)
    return Users(rows * signs)


def best_total_loss(rows: Array, radius: float) -> float:
    """Return the minimum of the total logistic loss over the ball, by raising a ridge until the minimiser is inside."""

    def solved(ridge: float) -> tuple[Array, float]:
        def objective(w: Array) -> tuple[float, Array]:
            margins = rows @ w
            value = np.logaddexp(0, -margins).mean() + ridge / 2 * (w @ w)
            return float(value), -(expit(-margins) @ rows) / len(rows) + ridge * w

        found = minimize(
            objective, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
        )
        return found.x, float(np.logaddexp(0, -(rows @ found.x)).sum())

    weights, total = solved(0.0)
    if np.linalg.norm(weights) <= radius:
        return total
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        weights, total = solved(middle)
        low, high = (low, middle) if np.linalg.norm(weights) <= radius else (middle, high)
    return solved(high)[1]


def full_information_losses(
    users: Users, *, sigmas: Array, step_sizes: Array, radius: float, runs: int, rng: np.random.Generator
) -> Array:
    r"""Return the total losses of Algorithm 1: theta falls by the noisy gradient, w is eta theta, projected.

    Simulation, no guarantee: floats from a seeded generator stand for the exact noise.

    Parameters
    ----------
    users : Users
        Streams of the horizon's length.
    sigmas, step_sizes : ndarray of shape (n_settings,)
        Standard deviation of the noise, >= 0, and learning rate of each setting.
    radius : float
        Radius B of the ball of weights.
    runs : int
        Draws of the noise for each stream and setting.

    Returns
    -------
    ndarray of shape (n_streams, n_settings, runs)

    References
    ----------
    .. [1] Zhang, Venkitasubramaniam, "Mutual-information-private online gradient descent algorithm", 2018,
       Algorithm 1.
    """
    state = _State(users, sigmas, step_sizes, runs, rng)
    for now, noise, _ in state.steps(directions=False):
        margins = state.margins(state.weights, now)
        state.losses += np.logaddexp(0, -margins)
        pull = expit(-margins)[..., None] * now[:, None]
        pull += noise
        state.move(pull, radius)
    return state.losses.reshape(len(users.rows), len(sigmas), runs)


def bandit_losses(
    users: Users,
    *,
    sigmas: Array,
    step_sizes: Array,
    exploration: float,
    radius: float,
    runs: int,
    rng: np.random.Generator,
) -> Array:
    r"""Return the total losses of Algorithm 2 at the points users were sent, :math:`w_t + \delta e_t`.

    As `full_information_losses`, with :math:`z_t = (d/\delta)\,\varphi_t e_t` in place of the gradient, and
    weights in the ball of radius :math:`B - \delta`, so that what is sent stays inside.
    """
    state = _State(users, sigmas, step_sizes, runs, rng)
    scale = users.rows.shape[2] / exploration
    for now, noise, directions in state.steps(directions=True):
        answers = np.logaddexp(0, -state.margins(state.weights + exploration * directions, now))
        state.losses += answers
        step = (-scale * answers)[..., None] * directions
        step += noise
        state.move(step, radius - exploration)
    return state.losses.reshape(len(users.rows), len(sigmas), runs)


class _State:
    """Weights, their unprojected sums and losses of all runs, and the noise of the coming steps."""

    def __init__(self, users: Users, sigmas: Array, step_sizes: Array, runs: int, rng: np.random.Generator) -> None:
        streams, _, dimension = users.rows.shape
        self.users, self.rng = users, rng
        self.sigmas = np.repeat(sigmas, runs)[:, None]
        self.step_sizes = np.repeat(step_sizes, runs)[:, None]
        self.weights = np.zeros((streams, len(self.sigmas), dimension))
        self.theta = np.zeros_like(self.weights)
        self.losses = np.zeros(self.weights.shape[:2])

    def steps(self, *, directions: bool) -> Iterator[tuple[Array, Array, Array]]:
        """Yield for each step the users' rows, the noise and, if wanted, directions on the unit sphere."""
        horizon = self.users.rows.shape[1]
        for start in range(0, horizon, BLOCK_STEPS):
            block = self.users.rows[:, start : start + BLOCK_STEPS]
            shape = (block.shape[1], *self.weights.shape)
            noise = self.rng.standard_normal(shape)
            noise *= self.sigmas
            around = self.rng.standard_normal(shape) if directions else noise
            if directions:
                around /= np.sqrt(np.einsum("skmd,skmd->skm", around, around))[..., None]
            for step in range(block.shape[1]):
                yield block[:, step], noise[step], around[step]

    def margins(self, weights: Array, rows: Array) -> Array:
        """Return the products of all weights with their stream's row, shape (n_streams, n_runs)."""
        products: Array = np.matmul(weights, rows[:, :, None])[..., 0]
        return products

    def move(self, step: Array, radius: float) -> None:
        """Add to the sums and project."""
        self.theta += step
        np.multiply(self.theta, self.step_sizes, out=self.weights)
        norms = np.sqrt(np.einsum("kmd,kmd->km", self.weights, self.weights))
        self.weights *= np.minimum(1, radius / np.maximum(norms, 1e-300))[..., None]
