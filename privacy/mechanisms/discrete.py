"""Exact integer noise by OpenDP: discrete Laplace, discrete Gaussian, and floats released on a grid."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

from privacy.mechanisms.randomness import RandomSource, SimulationRandom

enable_features("contrib")

LARGEST_COUNT = 2**62


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    r"""Add integer noise with :math:`P(k) \propto e^{-|k| \varepsilon / \Delta_1}` to a vector of integers.

    Parameters
    ----------
    epsilon : float
        Privacy loss of one release of the whole vector, > 0.
    sensitivity : int
        L1 sensitivity of the vector, >= 1.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    .. [1] Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, Section 5.2.
    """

    epsilon: float
    sensitivity: int

    def __post_init__(self) -> None:
        _check(self.epsilon, "epsilon", self.sensitivity)

    @property
    def scale(self) -> float:
        """Scale of the noise, in integers; rounded up, so the loss is never above `epsilon`."""
        return math.nextafter(self.sensitivity / self.epsilon, math.inf)

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
        measurement = make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), self.scale)
        return _invoke(measurement, counts, self.sensitivity, self.epsilon)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    r"""Add integer noise with :math:`P(k) \propto e^{-k^2 / (2 \sigma^2)}` to a vector of integers.

    Parameters
    ----------
    rho : float
        Zero-concentrated loss :math:`\Delta_2^2 / (2 \sigma^2)` of one release of the whole vector, > 0.
    sensitivity : float
        L2 sensitivity of the vector, > 0.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    .. [1] Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, Theorem 4.
    """

    rho: float
    sensitivity: float

    def __post_init__(self) -> None:
        _check(self.rho, "rho", self.sensitivity)

    @property
    def scale(self) -> float:
        """Parameter sigma of the noise, in integers; rounded up, so the loss is never above `rho`."""
        return self.sensitivity / math.sqrt(2 * self.rho) * (1 + 2.0**-50)

    def release(self, counts: NDArray[np.int64], *, rng: RandomSource) -> NDArray[np.int64]:
        """Return noisy `counts`, shape (n_counts,); exact where `rng` is secure, simulated otherwise."""
        _check_counts(counts)
        if isinstance(rng, SimulationRandom):
            return counts + _simulated_gaussian(self.scale, counts.size, rng.generator)
        measurement = make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), self.scale)
        return _invoke(measurement, counts, self.sensitivity, self.rho)


def grid_laplace(dimension: int, *, epsilon: float, l2_sensitivity: float, grid: float) -> DiscreteLaplace:
    r"""Return the integer noise that releases floats on a grid at `epsilon`.

    Parameters
    ----------
    dimension : int
        Length of the vector, >= 1.
    epsilon : float
        Privacy loss, > 0.
    l2_sensitivity : float
        L2 sensitivity of the vector before it is rounded to the grid, >= 0.
    grid : float
        Spacing of the grid, a power of two.

    Notes
    -----
    Rounding moves each of two neighbouring vectors by up to half a step per coordinate, so the
    L1 sensitivity in steps is at most :math:`\sqrt{d} \Delta_2 / h + d`.
    """
    check_grid(grid)
    if dimension < 1 or not (l2_sensitivity >= 0 and math.isfinite(l2_sensitivity)):
        raise ValueError(f"need dimension >= 1 and sensitivity >= 0, got {dimension} and {l2_sensitivity}")
    steps = math.sqrt(dimension) * l2_sensitivity / grid * (1 + 2.0**-40)
    return DiscreteLaplace(epsilon=epsilon, sensitivity=math.ceil(steps) + dimension)


def release_on_grid(
    values: NDArray[np.float64], *, epsilon: float, l2_sensitivity: float, grid: float, rng: RandomSource
) -> NDArray[np.float64]:
    """Round `values`, shape (d,), to the grid and return them with exact discrete Laplace noise.

    The output is a multiple of `grid`; dividing by a power of two is exact, so no float
    arithmetic touches the noise. Parameters as in `grid_laplace`.

    Raises
    ------
    ValueError
        If a parameter is out of range or a value does not fit on the grid.
    """
    noise = grid_laplace(values.size, epsilon=epsilon, l2_sensitivity=l2_sensitivity, grid=grid)
    steps = np.rint(values / grid)
    if not (np.abs(steps) <= LARGEST_COUNT).all():
        raise ValueError(f"values must be finite and below {LARGEST_COUNT} steps of {grid}")
    return noise.release(steps.astype(np.int64), rng=rng).astype(np.float64) * grid


def check_grid(grid: float) -> None:
    """Refuse a spacing that is no power of two: division by it would round."""
    if not (grid > 0 and math.isfinite(grid)) or math.frexp(grid)[0] != 0.5:
        raise ValueError(f"grid must be a power of two, got {grid}")


def _check(loss: float, name: str, sensitivity: float) -> None:
    if not (loss > 0 and math.isfinite(loss)):
        raise ValueError(f"{name} must be > 0 and finite, got {loss}")
    if not 0 < sensitivity <= LARGEST_COUNT or (name == "epsilon" and sensitivity != int(sensitivity)):
        raise ValueError(f"sensitivity must be > 0 (an integer for Laplace noise), got {sensitivity}")


def _check_counts(counts: NDArray[np.int64]) -> None:
    if counts.ndim != 1 or counts.dtype != np.int64:
        raise ValueError(f"counts must be a vector of int64, got {counts.dtype} of shape {counts.shape}")


def _invoke(measurement: Any, counts: NDArray[np.int64], sensitivity: float, loss: float) -> NDArray[np.int64]:
    charged = measurement.map(sensitivity)
    # The map rounds each of its float steps up, so it may exceed the exact loss by a few units in the last place.
    if charged > loss * (1 + 2.0**-48):
        raise ValueError(f"the sampler's own accounting gives {charged}, above {loss}")
    return np.array(measurement(counts.tolist()), dtype=np.int64)


def _simulated_gaussian(sigma: float, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw discrete Gaussians by rejection from a discrete Laplace proposal, in float64."""
    spread = math.floor(sigma) + 1
    p = -math.expm1(-1 / spread)
    kept = np.empty(0, dtype=np.int64)
    while kept.size < count:
        first, second = generator.geometric(p, size=(2, 2 * count + 16))
        proposal = first - second
        accept = np.exp(-((np.abs(proposal) - sigma**2 / spread) ** 2) / (2 * sigma**2))
        kept = np.concatenate([kept, proposal[generator.random(proposal.size) < accept]])
    return kept[:count]
