"""Exact integer noise by OpenDP: discrete Laplace, discrete Gaussian, and floats released on a grid."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import Measurement, enable_features

from privacy.mechanisms.randomness import RandomSource, SimulationRandom

enable_features("contrib")

LARGEST_COUNT = 2**62
LARGEST_SCALE = 2.0**52


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    r"""Add integer noise with :math:`P(k) \propto e^{-|k| / b}` to a vector of integers.

    Parameters
    ----------
    scale : float
        The scale b, > 0, taken as the exact rational it stores. A vector of L1 sensitivity s
        is released at a loss of s / b, which `privacy.accounting` charges.

    References
    ----------
    .. [1] Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, Section 5.2.
    """

    scale: float

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def log_mass(self, k: int) -> float:
        """Return the log probability that the noise is `k`."""
        return math.log(math.tanh(0.5 / self.scale)) - abs(k) / self.scale

    def release(self, counts: NDArray[np.int64], *, rng: RandomSource) -> NDArray[np.int64]:
        """Return noisy `counts`, shape (n_counts,); exact where `rng` is secure, simulated otherwise.

        The exact sampler draws from the operating system itself and saturates at the ends of int64.
        """
        _check_counts(counts)
        if isinstance(rng, SimulationRandom):
            p = -math.expm1(-1 / self.scale)
            noise: NDArray[np.int64] = np.subtract(*rng.generator.geometric(p, size=(2, counts.size)))
            return counts + noise
        return np.array(_exact_laplace(self.scale)(counts.tolist()), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    r"""Add integer noise with :math:`P(k) \propto e^{-k^2 / (2 \sigma^2)}` to a vector of integers.

    Parameters
    ----------
    scale : float
        The parameter sigma, > 0, taken as the exact rational it stores. A vector of L2 sensitivity
        s is released at a zero-concentrated loss of :math:`s^2 / (2 \sigma^2)`.

    References
    ----------
    .. [1] Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, Theorem 4.
    """

    scale: float

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def release(self, counts: NDArray[np.int64], *, rng: RandomSource) -> NDArray[np.int64]:
        """Return noisy `counts`, shape (n_counts,); exact where `rng` is secure, simulated otherwise."""
        _check_counts(counts)
        if isinstance(rng, SimulationRandom):
            return counts + _simulated_gaussian(self.scale, counts.size, rng.generator)
        return np.array(_exact_gaussian(self.scale)(counts.tolist()), dtype=np.int64)


# What draws holds a scale and no state; to describe it anew for each draw costs more than the draw.
@lru_cache(maxsize=64)
def _exact_laplace(scale: float) -> Measurement:
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale)


@lru_cache(maxsize=64)
def _exact_gaussian(scale: float) -> Measurement:
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale)


def release_on_grid(
    values: NDArray[np.float64],
    *,
    noise: type[DiscreteLaplace] | type[DiscreteGaussian],
    scale: float,
    grid: float,
    rng: RandomSource,
) -> NDArray[np.float64]:
    """Round `values` to a grid and return them with exact discrete noise.

    Dividing by a power of two is exact, so no float arithmetic touches the noise. Rounding moves
    each of two neighbouring vectors by up to half a step per coordinate, which the
    accountant adds to their distance.

    Parameters
    ----------
    values : ndarray of float64, shape (d,)
        Finite numbers.
    noise : DiscreteLaplace or DiscreteGaussian
        The kind of noise.
    scale : float
        Its scale in the units of `values`, > 0.
    grid : float
        Spacing, a power of two.
    rng : RandomSource
        Source of the noise; exact only if secure.

    Returns
    -------
    ndarray of float64, shape (d,)
        Multiples of `grid`.
    """
    check_grid(grid)
    steps = np.rint(values / grid)
    if not (np.abs(steps) <= LARGEST_COUNT).all():
        raise ValueError(f"values must be finite and below {LARGEST_COUNT} steps of {grid}")
    return noise(scale / grid).release(steps.astype(np.int64), rng=rng).astype(np.float64) * grid


def check_grid(grid: float) -> None:
    """Refuse a spacing that is no power of two: division by it would round."""
    if not (grid > 0 and math.isfinite(grid)) or math.frexp(grid)[0] != 0.5:
        raise ValueError(f"grid must be a power of two, got {grid}")


def _check_scale(scale: float) -> None:
    if not 0 < scale <= LARGEST_SCALE:
        raise ValueError(f"scale must be > 0 and at most {LARGEST_SCALE:.0f}, got {scale}")


def _check_counts(counts: NDArray[np.int64]) -> None:
    if counts.ndim != 1 or counts.dtype != np.int64:
        raise ValueError(f"counts must be a vector of int64, got {counts.dtype} of shape {counts.shape}")


def _simulated_gaussian(sigma: float, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    spread = math.floor(sigma) + 1
    p = -math.expm1(-1 / spread)
    kept = np.empty(0, dtype=np.int64)
    while kept.size < count:
        first, second = generator.geometric(p, size=(2, 2 * count + 16))
        proposal = first - second
        accept = np.exp(-((np.abs(proposal) - sigma**2 / spread) ** 2) / (2 * sigma**2))
        kept = np.concatenate([kept, proposal[generator.random(proposal.size) < accept]])
    return kept[:count]
