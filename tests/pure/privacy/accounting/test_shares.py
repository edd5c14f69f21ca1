import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.counts import class_counts_event
from privacy.accounting.events import ClassCountsEvent, SecretBlockEvent, SecretSampleEvent, SecretSeriesEvent
from privacy.errors import UnsoundCombination
from privacy.ledger.rules import check_step
from privacy.mechanisms.discrete import DiscreteLaplace


@given(
    epsilon=st.floats(1e-6, 100),
    cells=st.integers(2, 500),
    counted=st.integers(1, 2),
    adjacency=st.sampled_from(["null", "add_remove", "replace"]),
)
def test_the_least_noise_costs_no_more_than_was_asked_for(epsilon, cells, counted, adjacency):
    event = class_counts_event(epsilon, cells=cells, counted=counted, adjacency=adjacency)
    cost = event.cost(adjacency=adjacency)
    assert epsilon * (1 - 1e-9) < cost.epsilon <= epsilon
    assert cost.delta == 0


@pytest.mark.parametrize(("adjacency", "cells_moved"), [("null", 2), ("add_remove", 2), ("replace", 4)])
def test_the_cost_is_the_largest_ratio_of_masses(adjacency, cells_moved):
    """Second computation: the masses themselves, at every output near both neighbours, cell by cell."""
    event, noise = ClassCountsEvent(9, 2, 1.7), DiscreteLaplace(1.7)
    one_cell = max(abs(noise.log_mass(k) - noise.log_mass(k - 1)) for k in range(-30, 31))
    assert event.cost(adjacency=adjacency).epsilon == pytest.approx(cells_moved * one_cell, rel=1e-9)


def test_the_cost_is_that_of_loss_distributions():
    """Third computation, by the `dp_accounting` library: both cells of a record, one after the other."""
    once = privacy_loss_distribution.from_discrete_laplace_mechanism(1 / 2.0, value_discretization_interval=1e-4)
    found = once.compose(once).get_epsilon_for_delta(0.0)
    assert ClassCountsEvent(9, 2, 2.0).cost().epsilon == pytest.approx(found, abs=3e-4)


def test_rho_is_half_the_square():
    cost = ClassCountsEvent(9, 2, 2.0).cost()
    assert cost.rho == pytest.approx(0.5, rel=1e-9)
    assert cost.rho >= cost.epsilon**2 / 2


@pytest.mark.parametrize(
    ("cells", "counted", "scale"), [(0, 1, 1.0), (2, 3, 1.0), (2, 1, 0.0), (2, 1, math.inf), (2_000_000, 1, 1.0)]
)
def test_parameters_out_of_range_are_refused(cells, counted, scale):
    with pytest.raises(ValueError, match="must be"):
        ClassCountsEvent(cells, counted, scale)


def test_counts_on_a_block_are_one_more_release_of_its_series():
    """They descend from the newest release, count it, and add up to the amplification of the sum."""
    series = SecretSeriesEvent((0.1, 0.7), (2.0, 2.0), (0.0, 0.0))
    training = ClassCountsEvent(5, 1, 1.0)
    first = SecretBlockEvent(series, training, 1, (0, 0))
    counts = class_counts_event(series.epsilons[0], cells=9, counted=2)
    asked = SecretBlockEvent(series, counts, 1, first.counted)
    check_step(asked, first)
    with pytest.raises(UnsoundCombination, match="another release has paid"):
        check_step(asked, first, continued=True)
    with pytest.raises(ValueError, match="must count every release"):
        check_step(SecretBlockEvent(series, counts, 1, (0, 1)), first)
    with pytest.raises(ValueError, match="was given epsilon"):
        SecretBlockEvent(series, class_counts_event(2.1, cells=9, counted=2), 1, (1, 0))
    total = first.cost().epsilon + asked.cost().epsilon
    assert total == pytest.approx(math.log1p(0.1 * math.expm1(4.0)), rel=1e-9)
    # Amplified as if the coins were fresh, the second reading would be charged too little.
    assert total > 2 * SecretSampleEvent(counts, 0.1).cost().epsilon


def test_two_readings_of_a_sample_cost_what_their_mixture_shows():
    """Second computation of the series' price: all outcomes of two counts behind one coin, counted out."""
    rate, scale = 0.1, 1.0
    noise = np.exp([DiscreteLaplace(scale).log_mass(k) for k in range(-60, 61)])
    here, there = np.outer(noise[1:], noise[1:]), np.outer(noise[:-1], noise[:-1])
    ratio = (1 - rate) + rate * there / here
    series = SecretSeriesEvent((rate,), (1.0 + 1e-9,), (0.0,))
    events = [SecretBlockEvent(series, ClassCountsEvent(1, 1, scale), 1, (place,)) for place in range(2)]
    assert np.log(ratio.max()) == pytest.approx(sum(event.cost().epsilon for event in events), rel=1e-6)
