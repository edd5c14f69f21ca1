import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from privacy.mechanisms.screening import RESOLUTION, REST_BITS, coin_probability, flip_coins, flip_two_rate_coins


class FixedNumbers(SimulationRandom):
    """Yields the given numbers of 53 bits: first their front bits, then the rest of those that are asked for."""

    def __init__(self, numbers, front):
        super().__init__(0)
        fronts = [number >> REST_BITS for number in numbers]
        rest = [number % 2**REST_BITS for number in numbers if number >> REST_BITS == front]
        self.answers = [
            np.array(fronts + [0] * (-len(fronts) % 4), dtype=np.uint16).view(np.uint64),
            np.array(rest, dtype=np.uint64) << np.uint64(64 - REST_BITS),
        ]

    def words(self, count):
        answer = self.answers.pop(0)
        assert answer.size == count
        return answer


@given(
    st.fractions(min_value=Fraction(1, 2**53), max_value=1 - Fraction(1, 2**53)),
    st.lists(st.integers(0, RESOLUTION - 1), max_size=6),
)
def test_a_coin_shows_exactly_the_probability_that_is_charged(wanted, others):
    exact = coin_probability(wanted)
    numerator = int(exact * RESOLUTION)
    numbers = [numerator - 1, numerator, 0, RESOLUTION - 1, *others]
    rng = FixedNumbers(numbers, numerator >> REST_BITS)
    shown = flip_coins(np.full(len(numbers), float(exact)), high=exact, low=exact, rng=rng)
    assert shown.tolist() == [number < numerator for number in numbers]
    assert not rng.answers


@given(wanted=st.floats(-2, 2), low=st.integers(0, RESOLUTION), high=st.integers(0, RESOLUTION))
def test_no_coin_leaves_the_range_that_is_charged(wanted, low, high):
    """Whatever is wanted: a number below the smallest probability always shows, one above the largest never does."""
    low, high = sorted((low, high))
    for number, allowed in ((low - 1, [True]), (low, [True, False]), (high - 1, [True, False]), (high, [False])):
        if 0 <= number < RESOLUTION:
            clamped = min(max(math.ceil(Fraction(wanted) * RESOLUTION), low), high)
            rng = FixedNumbers([number], clamped >> REST_BITS)
            shown = flip_coins(
                np.array([wanted]), high=Fraction(high, RESOLUTION), low=Fraction(low, RESOLUTION), rng=rng
            )
            assert shown[0] in allowed


def test_coins_keep_the_shape_and_never_fail_a_certain_one():
    shown = flip_coins(np.array([[1.0, 0.0], [0.0, 1.0]]), high=Fraction(1), low=Fraction(0), rng=SecureRandom())
    assert shown.tolist() == [[True, False], [False, True]]
    assert flip_coins(np.empty(0), high=Fraction(1), low=Fraction(0), rng=SecureRandom()).shape == (0,)


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
