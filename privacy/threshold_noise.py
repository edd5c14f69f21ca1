"""Noise on many counts of which few pass: an exact coin for those far below, exact noise for those that matter."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privacy.arrays import CountArray
from privacy.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from privacy.mechanisms.randomness import RandomSource

WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    r"""Integer noise with :math:`P(z) \propto e^{-|z|/s}`, on all integers or on [-bound, bound].

    Parameters
    ----------
    scale : float
        The scale s, > 0, taken as the exact rational it stores.
    bound : int, optional
        Largest absolute value, >= 0; without it the noise is discrete Laplace.
    """

    scale: float
    bound: int | None = None

    def release(self, counts: CountArray, threshold: int, *, rng: RandomSource) -> tuple[NDArray[np.bool_], CountArray]:
        """Return which counts reach `threshold` with their noise, shape (n,), and those noisy counts alone.

        A count under the threshold first passes a coin with the exact chance that its noise lifts it; only then
        is noise drawn for it, given that it lifts. The outcome has the law of noise for every count.
        """
        passed = np.zeros(len(counts), dtype=np.bool_)
        noisy = np.zeros(len(counts), dtype=np.int64)
        missing = threshold - counts
        high = np.flatnonzero(missing <= 0)
        noisy[high] = counts[high] + self._draw(len(high), rng)
        passed[high] = noisy[high] >= threshold
        for distance in np.unique(missing[missing > 0]).tolist():
            low = np.flatnonzero(missing == distance)
            lifted = low[exact_coins(partial(self._tail, distance), len(low), rng)]
            noisy[lifted] = threshold + self._excess(len(lifted), distance, rng)
            passed[lifted] = True
        return passed, noisy[passed]

    def _tail(self, distance: int, bits: int) -> tuple[int, int]:
        """Return integers around the chance that the noise is `distance` >= 1 or more, times 2**bits."""
        if self.bound is not None and distance > self.bound:
            return 0, 0
        with localcontext() as context:
            context.prec = bits // 3 + 40
            q = (-1 / Decimal(self.scale)).exp()
            beyond = Decimal(0) if self.bound is None else q ** (self.bound + 1)
            chance = (q**distance - beyond) / (1 + q - 2 * beyond)
            # Forty digits to spare: the rounding of all steps is far below one unit.
            scaled = int(chance * 2**bits)
        return max(0, scaled - 1), scaled + 2

    def _draw(self, count: int, rng: RandomSource) -> CountArray:
        sampler = DiscreteLaplace(self.scale)
        noise = sampler.release(np.zeros(count, dtype=np.int64), rng=rng)
        while self.bound is not None and (outside := np.flatnonzero(np.abs(noise) > self.bound)).size:
            noise[outside] = sampler.release(np.zeros(outside.size, dtype=np.int64), rng=rng)
        return noise

    def _excess(self, count: int, distance: int, rng: RandomSource) -> CountArray:
        """Return what the noise exceeds `distance` by, given that it reaches it: the tail has no memory."""
        sampler = DiscreteLaplace(self.scale)
        excess = np.full(count, -1, dtype=np.int64)
        while (open_ := np.flatnonzero(excess < 0)).size:
            drawn = sampler.release(np.zeros(open_.size, dtype=np.int64), rng=rng) - 1
            if self.bound is not None:
                drawn[drawn + distance > self.bound] = -1
            excess[open_] = drawn
        return excess


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise on integers, so fine a grid that it stands for the continuous one.

    Parameters
    ----------
    scale : float
        Sigma in grid steps, >= 2**20: rounding a continuous Gaussian to such a grid differs from this noise by less
        than 1e-12 in every ratio of probabilities.
    """

    scale: float

    def __post_init__(self) -> None:
        if not self.scale >= 2**20:
            raise ValueError(f"scale must be >= 2**20 grid steps, got {self.scale}")

    def release(self, counts: CountArray, threshold: int, *, rng: RandomSource) -> tuple[NDArray[np.bool_], CountArray]:
        """Return which counts reach `threshold` with their noise, shape (n,), and those noisy counts alone."""
        noisy = DiscreteGaussian(self.scale).release(counts, rng=rng)
        passed = noisy >= threshold
        return passed, noisy[passed]


def exact_coins(chance: Callable[[int], tuple[int, int]], count: int, rng: RandomSource) -> NDArray[np.bool_]:
    """Flip coins whose chance is known to any number of bits.

    Parameters
    ----------
    chance : callable
        Takes a number of bits b and returns integers low <= 2**b times the chance <= high.
    count : int
        Number of coins.
    rng : RandomSource
        Source of the words.

    Returns
    -------
    ndarray of bool, shape (count,)
        Exact: a coin whose first 64 bits do not settle it is given more.
    """
    low, high = chance(WORD_BITS)
    words = rng.words(count)
    shown: NDArray[np.bool_] = words < np.uint64(min(low, 2**WORD_BITS - 1))
    for row in np.flatnonzero(~shown & (words <= np.uint64(min(high, 2**WORD_BITS - 1)))).tolist():
        shown[row] = _settle(chance, int(words[row]), rng)
    return shown


def _settle(chance: Callable[[int], tuple[int, int]], word: int, rng: RandomSource) -> bool:
    bits = WORD_BITS
    while True:
        low, high = chance(bits)
        # The uniform number lies in [word, word + 1) / 2**bits.
        if word + 1 <= low:
            return True
        if word >= high:
            return False
        word = word << WORD_BITS | rng.bits(WORD_BITS)
        bits += WORD_BITS
