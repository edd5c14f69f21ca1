"""Secret blocks: doubling public rates, and one coin that puts each record into one block at exactly its rate."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.choices.policies.doubling import DoublingBlocks
from annotation.choices.policies.updates import BatchState
from learner.strategies.blocks import block_edges, block_rates, draw_blocks
from privacy.accounting.screens import hidden_selection_epsilon
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom


@given(st.floats(1e-6, 0.999))
def test_rates_double_and_never_exceed_one_together(rate):
    rates = [Fraction(value) for value in block_rates(rate)]
    assert float(rates[0]) == pytest.approx(rate, abs=2**-53)
    assert rates[1:2] in ([], rates[:1])
    assert all(later == 2 * earlier for earlier, later in pairwise(rates[1:]))
    assert sum(rates) <= 1 < 2 * sum(rates)


def test_blocks_grow_as_the_policy_of_doubling_blocks_does():
    batches = DoublingBlocks(10).advance(BatchState(), np.ones(80, dtype=bool))[1]
    assert [len(batch.slots) for batch in batches] == pytest.approx([100 * rate for rate in block_rates(0.1)])


class Words(SecureRandom):
    """Hands out uniform numbers of the test's own."""

    def __init__(self, values):
        self.values = values

    def random(self, size=None):
        return np.array(self.values)


def test_a_coin_at_an_edge_belongs_to_the_next_block():
    edges = block_edges(0.1)
    step = 2.0**-53
    values = [0.0, edges[0] - step, edges[0], edges[1] - step, edges[1], edges[-1] - step, edges[-1], 1 - step]
    assert draw_blocks(8, 0.1, Words(values)).tolist() == [1, 1, 2, 2, 3, 4, 0, 0]


def test_every_block_gets_its_share():
    drawn = draw_blocks(200_000, 0.1, SimulationRandom(7))
    shares = np.bincount(drawn, minlength=5) / len(drawn)
    assert shares == pytest.approx([0.2, 0.1, 0.1, 0.2, 0.4], abs=0.005)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, float("nan")])
def test_a_rate_out_of_range_is_refused(rate):
    with pytest.raises(ValueError, match="probability"):
        draw_blocks(3, rate, SecureRandom())


@given(st.floats(0.01, 0.5), st.floats(0.01, 4.0))
def test_charging_every_block_covers_what_all_releases_tell_together(rate, epsilon):
    """A record is in one block at most, so the joint ratio is a mixture; its bounds must lie within the sum charged."""
    rates = np.array(block_rates(rate))
    charged = sum(hidden_selection_epsilon(value, epsilon) for value in rates)
    assert np.log1p((rates * np.expm1(epsilon)).sum()) <= charged * (1 + 1e-12)
    assert -np.log1p((rates * np.expm1(-epsilon)).sum()) <= charged * (1 + 1e-12)
