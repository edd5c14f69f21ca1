"""Binomial masses with relative accuracy, however far in the tail."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import kl_div

Floats = NDArray[np.float64]

# ln(n!) minus Stirling's approximation without its series, for n = 0..15.
_SMALL = np.array(
    [0.0, *(math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - math.log(2 * math.pi) / 2 for n in range(1, 16))]
)


def _stirling_error(n: Floats) -> Floats:
    wide = np.maximum(n, 16.0)
    inverse = 1.0 / (wide * wide)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - inverse / 1188) * inverse) * inverse) * inverse) / wide
    return np.where(n < 16, _SMALL[np.minimum(n, 15).astype(np.intp)], series)


def binomial_pmf(j: ArrayLike, n: ArrayLike, probability: float) -> Floats:
    """Return P(Bin(n, probability) = j) by Loader's saddle-point form, accurate far into the tails.

    Parameters
    ----------
    j, n : array_like of integers
        Broadcast against each other; 0 <= j <= n gives the mass, anything else zero.
    probability : float
        In (0, 1).

    References
    ----------
    .. [1] Loader, "Fast and accurate computation of binomial probabilities", 2000.
    """
    j, n = np.broadcast_arrays(np.asarray(j, dtype=np.float64), np.asarray(n, dtype=np.float64))
    inside = (j >= 0) & (j <= n)
    n = np.where(inside, n, 2.0)
    j = np.where(inside, j, 1.0)
    rest = n - j
    edge = (j == 0) | (rest == 0)
    exponent = kl_div(j, n * probability) + kl_div(rest, n * (1 - probability))
    exponent += _stirling_error(j) + _stirling_error(rest) - _stirling_error(n)
    # At an edge the two divergences are the whole exponent: (1-p)^n or p^n.
    spread = np.where(edge, 1.0, n / (2 * math.pi * np.where(edge, 1.0, j * rest)))
    mass = np.where(edge, 0.0, np.exp(-exponent) * np.sqrt(spread))
    mass = np.where(edge & (j == 0), np.exp(n * math.log1p(-probability)), mass)
    mass = np.where(edge & (rest == 0), np.exp(n * math.log(probability)), mass)
    return np.where(inside, mass, 0.0)


def bernoulli_divergence(x: float, y: float) -> float:
    """Return the Kullback-Leibler divergence of Bernoulli(x) from Bernoulli(y)."""
    return float(kl_div(x, y) + kl_div(1 - x, 1 - y))
