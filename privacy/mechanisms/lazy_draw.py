"""Real random vectors known by leading bits that can be extended, so that their rounding can be settled exactly."""

import decimal
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privacy.mechanisms.randomness import RandomSource

Interval = tuple[Decimal, Decimal]
FIRST_BITS = 96


class LazyDraw:
    """Uniform reals, known by leading bits that can be extended, and the Euclidean K-norm noise they stand for."""

    def __init__(self, dimension: int, rng: RandomSource) -> None:
        if dimension < 1:
            raise ValueError(f"dimension must be >= 1, got {dimension}")
        self._rng = rng
        self._bits = FIRST_BITS
        self._radii = [rng.bits(FIRST_BITS) for _ in range(dimension)]
        n_pairs = -(-dimension // 2)
        self._cuts = [rng.bits(FIRST_BITS) for _ in range(n_pairs - 1)]
        self._points = [self._point_in_disc() for _ in range(n_pairs)]
        signs = rng.bits(dimension)
        self._negative = [bool(signs >> index & 1) for index in range(dimension)]

    def settle(self, scale: Fraction, decide: Callable[[int, Interval], float | None]) -> NDArray[np.float64]:
        """Return what `decide` makes of every coordinate, with more bits until it can tell for all."""
        while True:
            coordinates = self.coordinates(scale)
            decided = [None if part is None else decide(index, part) for index, part in enumerate(coordinates)]
            settled = [value for value in decided if value is not None]
            if len(settled) == len(decided):
                return np.array(settled)
            self._extend()

    def _point_in_disc(self) -> tuple[int, int, int]:
        """Return a point uniform in the positive quadrant of the unit disc: two numerators and their bits."""
        x, y, bits = self._rng.bits(FIRST_BITS), self._rng.bits(FIRST_BITS), FIRST_BITS
        while True:
            if (x + 1) ** 2 + (y + 1) ** 2 <= 1 << 2 * bits:
                return x, y, bits
            if x**2 + y**2 >= 1 << 2 * bits:
                x, y, bits = self._rng.bits(FIRST_BITS), self._rng.bits(FIRST_BITS), FIRST_BITS
            else:
                x, y, bits = self._longer(x), self._longer(y), bits + 64

    def _extend(self) -> None:
        self._bits += 64
        self._radii = [self._longer(digits) for digits in self._radii]
        self._cuts = [self._longer(digits) for digits in self._cuts]
        self._points = [(self._longer(x), self._longer(y), bits + 64) for x, y, bits in self._points]

    def _longer(self, digits: int) -> int:
        return digits << 64 | self._rng.bits(64)

    def coordinates(self, scale: Fraction) -> list[Interval | None]:
        """Enclose every coordinate; None where the bits known so far leave it unbounded."""
        exact = Directed(self._bits // 3 + 6)
        # A Gamma(d) length is minus the logarithm of a product of d uniforms.
        product = exact.quotient((1, 1), (1, 1))
        for digits in self._radii:
            product = exact.times(product, exact.quotient((digits, digits + 1), (1 << self._bits,) * 2))
        length = exact.times(
            exact.minus_log(product), exact.quotient(*((part,) * 2 for part in scale.as_integer_ratio()))
        )
        # The squared lengths of pairs of coordinates of a uniform direction are the gaps between
        # sorted uniforms, and within a pair the direction is that of a point in the disc.
        parts: list[Interval] = []
        for gap, (x, y, _) in zip(self._gaps(), self._points, strict=True):
            square = (x**2 + y**2 << self._bits, (x + 1) ** 2 + (y + 1) ** 2 << self._bits)
            factor = exact.root(exact.quotient(gap, square))
            parts += [exact.times(exact.quotient((digits, digits + 1), (1, 1)), factor) for digits in (x, y)]
        if len(parts) > len(self._radii):
            # Without its last coordinate a uniform direction is shorter than one, but still uniform.
            last = parts.pop()
            one = exact.quotient((1, 1), (1, 1))
            length = exact.divide(length, exact.root(exact.minus(one, exact.times(last, last))))
        parts = [exact.times(part, length) for part in parts]
        return [
            None if not (low.is_finite() and high.is_finite()) else signed(low, high, negative)
            for (low, high), negative in zip(parts, self._negative, strict=True)
        ]

    def _gaps(self) -> list[tuple[int, int]]:
        """Enclose the gaps between the sorted cuts of the unit interval, in units of 2**-bits."""
        whole = 1 << self._bits
        lows = [0, *sorted(self._cuts), whole]
        highs = [0, *(cut + 1 for cut in lows[1:-1]), whole]
        return [(max(0, lows[i + 1] - highs[i]), highs[i + 1] - lows[i]) for i in range(len(lows) - 1)]


def nearest_float(_: int, part: Interval) -> float | None:
    """Return a float within 2**-51 of the size of a coordinate, or None while too few bits of it are known."""
    low, high = float(part[0]), float(part[1])
    return low if high - low <= 2.0**-52 * abs(low) else None


def signed(low: Decimal, high: Decimal, negative: bool) -> Interval:
    # `copy_negate` and not a minus, which would round to the caller's decimal context.
    return (high.copy_negate(), low.copy_negate()) if negative else (low, high)


class Directed:
    """Arithmetic on intervals of non-negative decimals, rounded outwards."""

    def __init__(self, digits: int) -> None:
        # Without traps a division by zero gives infinity or nan: an interval that settles nothing.
        self._down = decimal.Context(prec=digits, rounding=decimal.ROUND_FLOOR, traps=[])
        self._up = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING, traps=[])

    def quotient(self, a: tuple[int, int], b: tuple[int, int]) -> Interval:
        """Enclose the quotient of two intervals of integers."""
        return self._down.divide(a[0], b[1]), self._up.divide(a[1], b[0])

    def minus(self, a: Interval, b: Interval) -> Interval:
        return max(Decimal(0), self._down.subtract(a[0], b[1])), self._up.subtract(a[1], b[0])

    def times(self, a: Interval, b: Interval) -> Interval:
        return self._down.multiply(a[0], b[0]), self._up.multiply(a[1], b[1])

    def divide(self, a: Interval, b: Interval) -> Interval:
        return self._down.divide(a[0], b[1]), self._up.divide(a[1], b[0])

    def root(self, a: Interval) -> Interval:
        # Square roots and logarithms round to nearest whatever the context says: one step outwards covers it.
        return max(Decimal(0), self._down.next_minus(self._down.sqrt(a[0]))), self._up.next_plus(self._up.sqrt(a[1]))

    def minus_log(self, a: Interval) -> Interval:
        """Enclose -ln of an interval inside [0, 1]."""
        # One logarithm serves both ends: -ln has a slope of at most 1 / low between them.
        log = self._down.ln(min(a[1], Decimal(1)))
        low = self._down.next_plus(log).copy_negate()
        high = self._up.add(
            self._up.next_minus(log).copy_negate(), self._up.divide(self._up.subtract(a[1], a[0]), a[0])
        )
        return max(Decimal(0), low), high
