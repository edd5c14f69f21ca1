"""Noisy counts of cells: their price against a second accountant, their neighbours, and what is refused."""

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.events import CellCountsEvent
from privacy.accounting.sums import cell_counts_event
from privacy.mechanisms.cell_counts import NO_CELL, release_cell_counts
from privacy.mechanisms.discrete import DiscreteLaplace
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom


@pytest.mark.parametrize(("adjacency", "sensitivity"), [("null", 1), ("add_remove", 1), ("replace", 2)])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_the_price_agrees_with_a_second_accountant(adjacency, sensitivity, epsilon):
    """The library's distribution of the loss of discrete Laplace noise; one replaced moves two counts by one each."""
    event = cell_counts_event(epsilon, 64)
    pld = privacy_loss_distribution.from_discrete_laplace_mechanism(epsilon, value_discretization_interval=1e-5)
    for _ in range(sensitivity - 1):
        pld = pld.compose(pld)
    assert event.cost(adjacency=adjacency).epsilon == pytest.approx(pld.get_epsilon_for_delta(0.0), rel=1e-3)
    assert event.cost(adjacency=adjacency).delta == 0


@given(scale=st.floats(0.1, 50), count=st.integers(0, 50), seen=st.integers(-500, 500), up=st.sampled_from([-1, 1]))
def test_neighbours_differ_by_at_most_the_charge(scale, count, seen, up):
    noise = DiscreteLaplace(scale)
    loss = abs(noise.log_mass(seen - count) - noise.log_mass(seen - count - up))
    assert loss <= CellCountsEvent(3, scale).cost().epsilon * (1 + 1e-9)


@given(epsilon=st.floats(1e-6, 20), cells=st.integers(1, 65_536))
def test_the_event_of_an_epsilon_costs_no_more_and_hardly_less(epsilon, cells):
    cost = cell_counts_event(epsilon, cells).cost().epsilon
    assert epsilon * (1 - 1e-12) < cost <= epsilon


def test_every_cell_is_released_and_who_is_in_none_is_not_counted():
    event = CellCountsEvent(5, 1e-3)
    blocks = [np.array([0, 0, NO_CELL, 4]), np.array([], dtype=np.int64), np.array([4, 4])]
    for rng in (SecureRandom(), SimulationRandom(1)):
        assert release_cell_counts(blocks, event, rng=rng).tolist() == [2, 0, 0, 0, 3]


@pytest.mark.parametrize("cells", [[5], [-2]])
def test_cells_that_nobody_declared_are_refused(cells):
    with pytest.raises(ValueError, match="cells must lie"):
        release_cell_counts([np.array(cells)], CellCountsEvent(5, 1.0), rng=SimulationRandom(1))


@pytest.mark.parametrize("values", [(0, 1.0), (65_537, 1.0), (5, 0.0)])
def test_impossible_counts_are_refused(values):
    with pytest.raises(ValueError, match="got"):
        CellCountsEvent(*values)
