"""Private coins: which record of a stream or pool is shown, decided on exact rational probabilities."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privacy.mechanisms.randomness import RandomSource

RESOLUTION = 2**53
# What is left of 53 bits after the 16 that come first.
REST_BITS = 37


def coin_probability(probability: float | Fraction) -> Fraction:
    """Return the multiple of 2**-53 in [2**-53, 1 - 2**-53] nearest to `probability`.

    Store and charge this value: `flip_coins` shows exactly it.
    """
    if not 0 < probability < 1:
        raise ValueError(f"probability must lie strictly between 0 and 1, got {float(probability)}")
    return Fraction(min(max(round(Fraction(probability) * RESOLUTION), 1), RESOLUTION - 1), RESOLUTION)


def flip_coins(
    probabilities: NDArray[np.float64], *, high: Fraction, low: Fraction, rng: RandomSource
) -> NDArray[np.bool_]:
    """Select each record independently with its probability, clamped into [`low`, `high`]; same shape.

    `high` and `low` are multiples of 2**-53, for which the charge is made; rounding in the probabilities cannot leave
    the clamp. A coin shows exactly ``ceil(p 2**53) / 2**53``. `ValueError` for a nan, or a clamp that is empty or
    finer.
    """
    if not 0 <= low <= high <= 1 or RESOLUTION % high.denominator or RESOLUTION % low.denominator:
        raise ValueError(f"need multiples of 2**-53 with 0 <= low <= high <= 1, got [{float(low)}, {float(high)}]")
    if np.isnan(probabilities).any():
        raise ValueError("probabilities must be numbers, got nan")
    # Both ends are multiples of 2**-53 and so exact in float64.
    wanted = np.ceil(np.clip(probabilities, float(low), float(high)) * RESOLUTION)
    # A uniform number u of 53 bits is compared from the front: its first 16 bits nearly always decide, and a quarter
    # of the random bytes do. The rest is drawn for those few that they leave open.
    shown_below = wanted.astype(np.int64).reshape(-1)
    first = rng.words(-(-shown_below.size // 4)).view(np.uint16)[: shown_below.size]
    front = shown_below >> REST_BITS
    shown = first < front
    still_open = np.flatnonzero(first == front)
    rest = (rng.words(still_open.size) >> np.uint64(64 - REST_BITS)).astype(np.int64)
    shown[still_open] = rest < shown_below[still_open] & (2**REST_BITS - 1)
    return shown.reshape(wanted.shape)


def flip_two_rate_coins(
    informative: NDArray[np.bool_], *, high: Fraction, low: Fraction, rng: RandomSource
) -> NDArray[np.bool_]:
    """Select informative records with probability exactly `high`, all others with exactly `low`."""
    return flip_coins(np.where(informative, float(high), float(low)), high=high, low=low, rng=rng)
