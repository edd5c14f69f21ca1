"""Screening coins: the probability shown is the rational charged."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from privacy.mechanisms.screening import (
    RESOLUTION,
    coin_probability,
    exponential_screen_range,
    flip_coins,
    flip_two_rate_coins,
)


class CountingWords(SimulationRandom):
    """Yields the 53-bit values around one threshold."""

    def __init__(self, values):
        super().__init__(0)
        self.values = np.array(values, dtype=np.uint64) << np.uint64(11)

    def words(self, count):
        return self.values[:count]


@given(st.fractions(min_value=Fraction(1, 2**53), max_value=Fraction(1, 2)))
def test_a_coin_shows_exactly_the_probability_that_is_charged(wanted):
    exact = coin_probability(wanted)
    numerator = int(exact * RESOLUTION)
    rng = CountingWords([numerator - 1, numerator])
    shown = flip_coins(np.full(2, float(exact)), high=exact, low=exact, rng=rng)
    assert shown.tolist() == [True, False]


@given(
    threshold=st.floats(0.01, 0.7),
    epsilon=st.floats(0.01, 3),
    distances=st.lists(st.floats(0, 1), min_size=2, max_size=20),
)
def test_exponential_screen_stays_within_its_cost(threshold, epsilon, distances):
    """The worst log ratio of either outcome over all pairs of distances is within the published cost."""
    high, low = exponential_screen_range(threshold, 1.0, epsilon)
    rates = np.exp(-np.maximum(threshold, distances) * epsilon / (1 - threshold))
    shown = [Fraction(float(rate)) for rate in np.clip(rates, float(low), float(high))]
    worst = max(max(shown) / min(shown), (1 - min(shown)) / (1 - max(shown)))
    top = math.exp(-threshold * epsilon / (1 - threshold))
    cost = max(epsilon, math.log((1 - top * math.exp(-epsilon)) / (1 - top)))
    assert math.log(worst) <= cost


def test_two_rates_are_kept_apart():
    """Six sigma on each share."""
    informative = np.arange(200_000) % 2 == 0
    high, low = coin_probability(0.8), coin_probability(0.1)
    shown = flip_two_rate_coins(informative, high=high, low=low, rng=SimulationRandom(0))
    assert abs(shown[informative].mean() - 0.8) < 6 * math.sqrt(0.16 / 100_000)
    assert abs(shown[~informative].mean() - 0.1) < 6 * math.sqrt(0.09 / 100_000)


def test_refusals():
    half = Fraction(1, 2)
    for wrong in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="strictly between"):
            coin_probability(wrong)
    with pytest.raises(ValueError, match="multiples"):
        flip_coins(np.array([0.5]), high=Fraction(1, 3), low=Fraction(1, 3), rng=SecureRandom())
    with pytest.raises(ValueError, match="nan"):
        flip_coins(np.array([math.nan]), high=half, low=half, rng=SecureRandom())
    for threshold, epsilon in ((0.0, 1.0), (1.0, 1.0), (0.5, 0.0), (0.5, 100.0)):
        with pytest.raises(ValueError):
            exponential_screen_range(threshold, 1.0, epsilon)
