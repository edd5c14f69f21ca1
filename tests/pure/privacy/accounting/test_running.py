import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.accounting.composition import gaussian_epsilon
from privacy.accounting.events import MinibatchSgdEvent, RunningSumsEvent, StreamEvent
from privacy.accounting.screens import stream_epsilon
from privacy.accounting.sums import (
    FITTED,
    MOST_UPDATES,
    PARTS,
    SumsEvent,
    charged_delta,
    fitted_for,
    running_sums_event,
    sums_mu,
)

SUMS = SumsEvent(3, 2, 1.0, 12.0, 5.0, delta=1e-6)


def event_of(updates):
    return RunningSumsEvent(SUMS, updates, *fitted_for(updates))


def matrix(event):
    c = np.array(event.coefficients) / PARTS
    return np.array([[c[t - j] if t >= j else 0.0 for j in range(len(c))] for t in range(len(c))])


@pytest.mark.parametrize("updates", [1, 2, 16, 64, 100])
def test_one_record_pays_for_the_longest_column(updates):
    event = event_of(updates)
    longest = np.linalg.norm(matrix(event), axis=0).max()
    assert event.gaussian_mu() == pytest.approx(SUMS.gaussian_mu() * longest, rel=1e-12)
    assert event.gaussian_mu() >= SUMS.gaussian_mu() * longest
    assert event.cost().epsilon >= gaussian_epsilon(SUMS.gaussian_mu() * longest, 1e-6) + 0.99e-8


def test_price_against_a_second_implementation():
    """As the accountant of the `dp_accounting` library has it: one Gaussian release after the other."""
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415  # slow import

    event = event_of(5)
    total = privacy_loss_distribution.identity()
    for part in event.coefficients:
        one = privacy_loss_distribution.from_gaussian_mechanism(PARTS / part / SUMS.gaussian_mu())
        total = total.compose(one)
    assert event.cost().epsilon == pytest.approx(total.get_epsilon_for_delta(1e-6), rel=1e-3)
    assert event.cost().rho == pytest.approx(sum((p / PARTS) ** 2 for p in event.coefficients) * SUMS.cost().rho)


def test_a_release_a_day_costs_the_logarithm_of_the_days():
    squares = [(event_of(days).gaussian_mu() / SUMS.gaussian_mu()) ** 2 for days in (16, 64, 256, 1024)]
    assert squares[0] < 1.8
    # Every further factor of four adds as much again, where releases side by side would cost four times as much.
    assert all(0.2 < second - first < 0.6 for first, second in pairwise(squares))


def test_coefficients_are_whole_numbers_computed_alike_everywhere():
    # 5695 + 27007, then each term times its decay, rounded down in parts of parts.
    assert event_of(4).coefficients == (65536, 32702, 23802, 19395)
    for updates in FITTED:
        found = event_of(updates).coefficients
        assert len(found) == updates
        assert all(0 <= later <= earlier <= PARTS for earlier, later in pairwise(found))


@settings(max_examples=25, deadline=None)
@given(
    epsilon=st.floats(0.05, 8),
    exponent=st.floats(-12, -3),
    updates=st.integers(1, MOST_UPDATES),
    adjacency=st.sampled_from(["null", "replace", "add_remove"]),
)
def test_solved_events_cost_what_was_asked_and_hardly_less(epsilon, exponent, updates, adjacency):
    delta = 10.0**exponent
    event = running_sums_event(
        sums_mu(epsilon, delta),
        updates=updates,
        dimension=4,
        n_classes=3,
        norm_bound=1.05,
        moment_share=0.1,
        delta=charged_delta(delta),
        adjacency=adjacency,
    )
    cost = event.cost(adjacency=adjacency)
    assert 0.99999 * epsilon <= cost.epsilon <= epsilon
    assert 0.999 * delta <= cost.delta <= delta


def test_in_rho_no_point_is_charged():
    counted = event_of(64).in_rho()
    assert (counted.cost().rho, counted.cost().delta) == (event_of(64).cost().rho, 0.0)


def test_a_screened_stream_adds_the_coin_to_it():
    event = event_of(8)
    whole = StreamEvent(0.1, 0.05, event, True, "flmb").cost()
    one = event.cost().epsilon
    assert whole.epsilon == pytest.approx(stream_epsilon(0.1, 0.05, one, selection_visible=True))
    assert whole.delta == event.cost().delta
    hidden = StreamEvent(0.1, 0.05, event, False).cost()
    assert hidden.epsilon == pytest.approx(math.log1p(0.1 * math.expm1(one)))
    assert hidden.delta == pytest.approx(0.1 * event.cost().delta)


def test_a_stream_is_made_of_steps_or_of_running_sums():
    StreamEvent(0.1, 0.05, MinibatchSgdEvent(2.0, 5), True)
    with pytest.raises(ValueError, match="no update of a stream"):
        StreamEvent(0.1, 0.05, SUMS, True)


@pytest.mark.parametrize(
    "wrong",
    [
        (SUMS, 0, (), ()),
        (SUMS, MOST_UPDATES + 1, (), ()),
        (SUMS, 4, (1,), ()),
        (SUMS, 4, (PARTS,), (1,)),
        (SUMS, 4, (1,), (-1,)),
        (SumsEvent(257, 10, 1.0, 1.0, 1.0), 64, (), ()),
    ],
)
def test_what_is_out_of_range_is_refused(wrong):
    with pytest.raises(ValueError, match=r"updates must be|decays and weights|at most"):
        RunningSumsEvent(*wrong)
    with pytest.raises(ValueError, match="updates must be"):
        fitted_for(MOST_UPDATES + 1)
