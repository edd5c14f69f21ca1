"""Many tilted logistic regressions on the same rows at once, and the noise they are tilted by: simulation only."""

import numpy as np
from scipy.special import expit

from privacy.arrays import Array

MOST_STEPS = 200


def gamma_noise(scale: float, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Return vectors, shape (n, d), of uniform direction and Gamma(d, `scale`) length."""
    draws = rng.standard_normal(shape)
    lengths = rng.gamma(shape[1], scale, size=shape[0])
    noise: Array = draws * (lengths / np.linalg.norm(draws, axis=1))[:, None]
    return noise


def solve_tilted(signed: Array, ridges: Array, tilts: Array, *, tolerance: float = 1e-9) -> Array:
    r"""Minimise :math:`\frac1n\sum_i \ln(1+e^{-\langle s_i, w\rangle}) + \frac{\lambda}{2}\|w\|^2 + b \cdot w`.

    Newton steps for all problems side by side, damped so that each descends.

    References
    ----------
    .. [1] Sun, Tran-Dinh, "Generalized self-concordant functions: a recipe for Newton-type methods", 2019.
    """
    n, dimension = signed.shape
    upper = np.triu_indices(dimension)
    # All second-order terms of all problems are one product with these.
    products = signed[:, upper[0]] * signed[:, upper[1]]
    # A tilt beyond the longest gradient of the losses decides where the minimiser lies, within 1 / lambda.
    heavy = np.linalg.norm(tilts, axis=1) > 1
    weights = np.where(heavy[:, None], -tilts / ridges[:, None], 0.0)
    left = np.arange(len(tilts))
    for _ in range(MOST_STEPS):
        slopes = expit(-(signed @ weights[left].T))
        gradients = -(slopes.T @ signed) / n + ridges[left, None] * weights[left] + tilts[left]
        unsolved = np.linalg.norm(gradients, axis=1) > tolerance
        if not unsolved.any():
            return weights
        left, gradients, slopes = left[unsolved], gradients[unsolved], slopes[:, unsolved]
        packed = (slopes * (1 - slopes)).T @ products / n
        hessians = np.zeros((len(left), dimension, dimension))
        hessians[:, upper[0], upper[1]] = hessians[:, upper[1], upper[0]] = packed
        hessians[:, range(dimension), range(dimension)] += ridges[left, None]
        steps = np.linalg.solve(hessians, gradients[:, :, None])[:, :, 0]
        lengths = np.linalg.norm(steps, axis=1)
        weights[left] -= steps * (np.log1p(lengths) / np.maximum(lengths, 1e-300))[:, None]
    raise ArithmeticError(f"{len(left)} logistic regressions are not solved after {MOST_STEPS} steps")
