from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.strategies.blocks import MOST_BLOCKS, block_rates, draw_blocks
from privacy.accounting.screens import hidden_selection_epsilon
from privacy.mechanisms.randomness import SecureRandom


@given(st.floats(1e-6, 0.999), st.floats(1, 1000))
def test_rates_grow_and_never_exceed_one_together(rate, growth):
    rates = [Fraction(value) for value in block_rates(rate, growth)]
    assert float(rates[0]) == pytest.approx(rate, abs=2**-53)
    for earlier, later in pairwise(rates):
        assert float(later) == pytest.approx(growth * earlier, abs=2**-53)
    assert sum(rates) <= 1
    assert len(rates) == MOST_BLOCKS or sum(rates) + rates[-1] * Fraction(growth) > 1
    # Sums in floats are exact, so that a coin falls below an edge with exactly its probability.
    assert Fraction(float(np.cumsum([float(value) for value in rates])[-1])) == sum(rates)


def test_the_default_is_one_small_block_and_one_large():
    assert block_rates(0.1, 7.0) == pytest.approx((0.1, 0.7), abs=1e-15)
    assert block_rates(0.1, 2.0) == pytest.approx((0.1, 0.2, 0.4), abs=1e-15)
    assert block_rates(0.25, 1.0) == (0.25,) * 4


class Words(SecureRandom):
    def __init__(self, values):
        self.values = values

    def random(self, size=None):
        return np.array(self.values)


def test_a_coin_at_an_edge_belongs_to_the_next_block():
    rates = block_rates(0.1, 2)
    edges = np.cumsum(rates)
    step = 2.0**-53
    values = [0.0, edges[0] - step, edges[0], edges[1] - step, edges[1], edges[-1] - step, edges[-1], 1 - step]
    assert draw_blocks(8, rates, Words(values)).tolist() == [1, 1, 2, 2, 3, 3, 0, 0]


@given(st.floats(0.01, 0.5), st.floats(0.01, 4.0))
def test_charging_every_block_covers_what_all_releases_tell_together(rate, epsilon):
    """A record is in one block at most, so the joint ratio is a mixture; its bounds must lie within the sum charged."""
    rates = np.array(block_rates(rate, 2))
    charged = sum(hidden_selection_epsilon(value, epsilon) for value in rates)
    assert np.log1p((rates * np.expm1(epsilon)).sum()) <= charged * (1 + 1e-12)
    assert -np.log1p((rates * np.expm1(-epsilon)).sum()) <= charged * (1 + 1e-12)
