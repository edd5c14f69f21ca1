"""Gaussian noise for use inside a mechanism, drawn as exact real numbers."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privacy.mechanisms import lazy_draw
from privacy.mechanisms.lazy_draw import Directed, Interval, LazyDraw, nearest_float, signed
from privacy.mechanisms.randomness import RandomSource


@dataclass(frozen=True, slots=True)
class GaussianTilt:
    r"""A vector in R^d of independent normal coordinates with standard deviation :math:`\sigma`.

    Each draw is a real vector with precisely this law, enclosed by directed decimal arithmetic as in
    `EuclideanNoise`; `sample` returns the floats next to it. Noise that is itself released takes
    `DiscreteGaussian`, whose law lives on the grid of the output.

    Parameters
    ----------
    sigma : float
        Standard deviation, > 0, taken as the exact rational it stores.

    References
    ----------
    .. [1] Box, Muller, "A note on the generation of random normal deviates", 1958.
    .. [2] Karney, "Sampling exactly from the normal distribution", 2016 (lazily extended uniforms).
    """

    sigma: float

    def __post_init__(self) -> None:
        if not (self.sigma > 0 and math.isfinite(self.sigma)):
            raise ValueError(f"sigma must be > 0 and finite, got {self.sigma}")

    def sample(self, dimension: int, *, rng: RandomSource) -> NDArray[np.float64]:
        """Return one draw, shape (dimension,), each coordinate within 2**-51 of its size from the exact one."""
        return _LazyGaussian(dimension, rng).settle(Fraction(self.sigma), nearest_float)


class _LazyGaussian(LazyDraw):
    """Pairs of normal coordinates: a uniform direction in the plane, and a length whose square is exponential."""

    def __init__(self, dimension: int, rng: RandomSource) -> None:
        if dimension < 1:
            raise ValueError(f"dimension must be >= 1, got {dimension}")
        self._rng = rng
        self._bits = lazy_draw.FIRST_BITS
        n_pairs = -(-dimension // 2)
        self._radii = [rng.bits(self._bits) for _ in range(n_pairs)]
        self._cuts = []
        self._points = [self._point_in_disc() for _ in range(n_pairs)]
        signs = rng.bits(dimension)
        self._negative = [bool(signs >> index & 1) for index in range(dimension)]

    def coordinates(self, scale: Fraction) -> list[Interval | None]:
        """Enclose every coordinate; None where the bits known so far leave it unbounded."""
        exact = Directed(self._bits // 3 + 6)
        sigma = exact.quotient(*((part,) * 2 for part in scale.as_integer_ratio()))
        two = exact.quotient((2, 2), (1, 1))
        parts: list[Interval] = []
        for digits, (x, y, _) in zip(self._radii, self._points, strict=True):
            square = exact.times(two, exact.minus_log(exact.quotient((digits, digits + 1), (1 << self._bits,) * 2)))
            spread = exact.quotient((x**2 + y**2, (x + 1) ** 2 + (y + 1) ** 2), (1, 1))
            length = exact.times(sigma, exact.root(exact.divide(square, spread)))
            parts += [exact.times(exact.quotient((part, part + 1), (1, 1)), length) for part in (x, y)]
        # An odd number leaves the last coordinate of the last pair out: the others do not depend on it.
        return [
            None if not (low.is_finite() and high.is_finite()) else signed(low, high, negative)
            for (low, high), negative in zip(parts, self._negative, strict=False)
        ]
