"""Noisy online gradient descent for many runs at once: gradients in full, or one answer a user."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from privacy.arrays import Array

BLOCK_STEPS = 256


class Normals(Protocol):
    def standard_normal(self, size: tuple[int, ...]) -> Array: ...


class SideBySide:
    """Generators of as many streams each, whose draws are what each would draw alone."""

    def __init__(self, generators: Sequence[np.random.Generator]) -> None:
        self.generators = generators

    def standard_normal(self, size: tuple[int, ...]) -> Array:
        """Return draws of shape (steps, streams, ...)."""
        steps, streams, *rest = size
        share = (steps, streams // len(self.generators), *rest)
        return np.concatenate([generator.standard_normal(share) for generator in self.generators], axis=1)


@dataclass(frozen=True, slots=True)
class Users:
    r"""Streams of users with losses :math:`f_t(w) = \ln(1 + e^{-\langle a_t, w\rangle})`, 1-Lipschitz and convex."""

    rows: Array

    def first(self, horizon: int) -> "Users":
        return Users(self.rows[:, :horizon])

    def best_losses(self, radius: float) -> Array:
        return np.array([best_total_loss(stream, radius) for stream in self.rows])


def draw_users(*, streams: int, horizon: int, dimension: int, truth_norm: float, rng: np.random.Generator) -> Users:
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
    users: Users, *, sigmas: Array, step_sizes: Array, radius: float, runs: int, rng: Normals
) -> Array:
    r"""Return the total losses of Algorithm 1: theta falls by the noisy gradient, w is eta theta, projected.

    Simulation, no guarantee: floats from a seeded generator stand for the exact noise.

    References
    ----------
    .. [1] Zhang, Venkitasubramaniam, "Mutual-information-private online gradient descent algorithm", 2018,
       Algorithm 1.
    """
    state = _DescentState(users, sigmas, step_sizes, runs, rng)
    for rows, noise, _ in state.blocks(directions=False):
        pulls = state.step_sizes * rows[:, :, None]
        for now, shake, pull, losses in zip(-rows, noise, pulls, state.losses_of(len(rows)), strict=True):
            margins = np.matmul(state.weights, now[..., None])[..., 0]
            np.logaddexp(0, margins, out=losses)
            state.move(expit(margins)[..., None] * pull, shake, radius)
    return state.total.reshape(len(users.rows), len(sigmas), runs)


def bandit_losses(
    users: Users, *, sigmas: Array, step_sizes: Array, exploration: float, radius: float, runs: int, rng: Normals
) -> Array:
    r"""Return the total losses of Algorithm 2 at the points users were sent, :math:`w_t + \delta e_t`.

    As `full_information_losses`, with :math:`z_t = (d/\delta)\,\varphi_t e_t` in place of the gradient, and
    weights in the ball of radius :math:`B - \delta`, so that what is sent stays inside.
    """
    state = _DescentState(users, sigmas, step_sizes, runs, rng)
    scale = users.rows.shape[2] / exploration
    for rows, noise, around in state.blocks(directions=True):
        pulls, offsets = -scale * state.step_sizes * around, exploration * around
        for now, shake, pull, offset, losses in zip(
            -rows, noise, pulls, offsets, state.losses_of(len(rows)), strict=True
        ):
            np.logaddexp(0, np.matmul(state.weights + offset, now[..., None])[..., 0], out=losses)
            state.move(losses[..., None] * pull, shake, radius - exploration)
    return state.total.reshape(len(users.rows), len(sigmas), runs)


class _DescentState:
    """Weights, what they are before the projection, and losses of all runs; blocks of what the coming steps draw.

    A step is some microseconds of few calls on small arrays, so that what can is done for a block at once.
    """

    def __init__(self, users: Users, sigmas: Array, step_sizes: Array, runs: int, rng: Normals) -> None:
        streams, _, dimension = users.rows.shape
        self.users, self.rng = users, rng
        self.step_sizes = np.repeat(step_sizes, runs)[:, None]
        self.noise_scale = np.repeat(sigmas, runs)[:, None] * self.step_sizes
        self.weights = np.zeros((streams, len(self.step_sizes), dimension))
        self.unprojected = np.zeros_like(self.weights)
        self.total = np.zeros(self.weights.shape[:2])

    def blocks(self, *, directions: bool) -> Iterator[tuple[Array, Array, Array]]:
        """Yield users' rows, what the noise moves and, if wanted, directions on the unit sphere, steps first."""
        for start in range(0, self.users.rows.shape[1], BLOCK_STEPS):
            rows = self.users.rows[:, start : start + BLOCK_STEPS].swapaxes(0, 1)
            shape = (len(rows), *self.weights.shape)
            noise = self.noise_scale * self.rng.standard_normal(shape)
            around = self.rng.standard_normal(shape) if directions else noise
            if directions:
                around /= np.sqrt(np.einsum("skmd,skmd->skm", around, around))[..., None]
            yield rows, noise, around

    def losses_of(self, steps: int) -> Iterator[Array]:
        """Yield a place for the losses of each step of a block, and add them up after the last."""
        losses = np.empty((steps, *self.total.shape))
        yield from losses
        self.total += losses.sum(axis=0)

    def move(self, step: Array, noise: Array, radius: float) -> None:
        self.unprojected += step
        self.unprojected += noise
        squares = np.einsum("kmd,kmd->km", self.unprojected, self.unprojected)
        lengths = np.sqrt(np.maximum(squares, radius**2, out=squares), out=squares)
        np.multiply(self.unprojected, np.divide(radius, lengths, out=lengths)[..., None], out=self.weights)
