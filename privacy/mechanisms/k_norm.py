"""Euclidean K-norm noise (Gamma length, uniform direction), drawn as exact real numbers."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privacy.mechanisms.discrete import check_grid
from privacy.mechanisms.lazy_draw import Interval, LazyDraw, nearest_float
from privacy.mechanisms.randomness import RandomSource


@dataclass(frozen=True, slots=True)
class EuclideanNoise:
    r"""Noise in R^d with density proportional to :math:`e^{-\|z\| / b}`.

    Its length is Gamma distributed with shape d and scale b, its direction uniform.

    What is exact: each draw is a real vector with precisely this law, for any d. It is known
    by the leading bits of its uniforms, from which directed decimal arithmetic encloses every
    coordinate; `release` extends the bits until the rounded sum is certain. The output is thus
    the rounding of a sum of reals, post-processing of the ideal mechanism, and no float is
    ever added to a secret. What is not: the running time varies with the draw and, through the
    place of the nearest rounding border, by a chance of about 2**-30 with the values; and
    `sample` returns nearby floats.

    Parameters
    ----------
    scale : float
        The scale b, > 0, taken as the exact rational it stores. A vector of L2 sensitivity s is
        released at a loss of s / b, which `privacy.accounting` charges.

    References
    ----------
    .. [1] Hardt, Talwar, "On the geometry of differential privacy", 2010, Section 4.
    .. [2] Chaudhuri, Monteleoni, Sarwate, "Differentially private empirical risk minimization", 2011, Algorithm 1.
    .. [3] Karney, "Sampling exactly from the normal distribution", 2016 (lazily extended uniforms).
    """

    scale: float

    def __post_init__(self) -> None:
        if not (self.scale > 0 and math.isfinite(self.scale)):
            raise ValueError(f"scale must be > 0 and finite, got {self.scale}")

    def log_density(self, noise: NDArray[np.float64]) -> float:
        """Return the log density of `noise`, shape (d,), up to the constant of its dimension."""
        return -float(np.linalg.norm(noise)) / self.scale

    def sample(self, dimension: int, *, rng: RandomSource) -> NDArray[np.float64]:
        """Return one draw, shape (dimension,), each coordinate within 2**-51 of its size from the exact one.

        For use inside a mechanism whose own release step covers that rounding, never as output.
        """
        return LazyDraw(dimension, rng).settle(Fraction(self.scale), nearest_float)

    def release(self, values: NDArray[np.float64], *, grid: float, rng: RandomSource) -> NDArray[np.float64]:
        """Return `values`, shape (d,), plus noise, rounded to multiples of `grid`, a power of two.

        Raises
        ------
        ValueError
            If `grid` is no power of two or a value is not finite.
        """
        check_grid(grid)
        if not np.isfinite(values).all():
            raise ValueError("values must be finite")
        shifts = [Fraction(float(value)) / Fraction(grid) + Fraction(1, 2) for value in values]
        inverse = Fraction(1) / Fraction(grid)

        def on_grid(index: int, part: Interval) -> float | None:
            low, high = (math.floor(Fraction(end) * inverse + shifts[index]) for end in part)
            # float() may round beyond 2**53 steps, but that is after the noise.
            return float(low) * grid if low == high else None

        return LazyDraw(len(shifts), rng).settle(Fraction(self.scale), on_grid)
