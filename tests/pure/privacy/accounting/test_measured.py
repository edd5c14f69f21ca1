"""Trainings whose spans are counted on held-out records: sensitivity, price, noise, and what is refused."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting import events as ev
from privacy.accounting.counts import counts_sensitivity, measured_fit_event, picked_fit_event

STEPS = ev.SpanStepsEvent(20, 20, 7, 1.0, 0.5, 2.5, 15.0)
PICKED = picked_fit_event(STEPS, candidates=5, share=0.1)
ADJACENT = pytest.mark.parametrize("adjacency", ["null", "add_remove", "replace"])


def counts_of_a_record(cap):
    """Return all (right, missed, spurious) that up to `cap` true and `cap` predicted spans can give."""
    for true, predicted in itertools.product(range(cap + 1), repeat=2):
        for right in range(min(true, predicted) + 1):
            yield right, true - right, predicted - right


@pytest.mark.parametrize("cap", [1, 2, 3, 8])
def test_sensitivity_is_the_longest_distance_of_any_two_records(cap):
    known = list(counts_of_a_record(cap))
    left_out = max(math.hypot(*one) for one in known)
    replaced = max(math.dist(one, other) for one, other in itertools.product(known, repeat=2))
    assert counts_sensitivity(cap) == pytest.approx(left_out, rel=1e-12)
    assert counts_sensitivity(cap, adjacency="add_remove") == counts_sensitivity(cap) >= left_out
    assert counts_sensitivity(cap, adjacency="replace") == pytest.approx(replaced, rel=1e-12)


@pytest.mark.parametrize("inner", [STEPS, PICKED], ids=lambda event: event.kind)
@pytest.mark.parametrize("scale", [5.0, 12.0, 90.0])
@ADJACENT
def test_price_against_a_second_implementation(inner, scale, adjacency):
    """A neighbour moves the training, the counts, or, replaced by one of the other part, each by one record."""
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415  # slow import

    event = ev.MeasuredFitEvent(inner, 8, scale, delta=1e-6)
    alone = {name: inner.gaussian_mu(adjacency=name) for name in ("null", adjacency)}
    curves = [[alone[adjacency]], [counts_sensitivity(8, adjacency=adjacency) / scale]]
    if adjacency == "replace":
        curves.append([alone["null"], counts_sensitivity(8) / scale])
    dearest = 0.0
    for ratios in curves:
        whole = privacy_loss_distribution.from_gaussian_mechanism(1 / ratios[0])
        for ratio in ratios[1:]:
            whole = whole.compose(privacy_loss_distribution.from_gaussian_mechanism(1 / ratio))
        dearest = max(dearest, whole.get_epsilon_for_delta(1e-6))
    assert event.cost(adjacency=adjacency).epsilon == pytest.approx(dearest, rel=2e-3)


@given(
    sigma=st.floats(0.5, 30),
    steps=st.integers(1, 40),
    cap=st.integers(1, 12),
    picked=st.booleans(),
    adjacency=st.sampled_from(["null", "add_remove", "replace"]),
)
def test_counts_raise_no_price(sigma, steps, cap, picked, adjacency):
    inner = ev.SpanStepsEvent(steps, 20, 7, 1.0, 0.5, sigma, 40.0)
    if picked:
        inner = picked_fit_event(inner, candidates=5, share=0.1, adjacency=adjacency)
    event = measured_fit_event(inner, spans_per_record=cap, delta=1e-6, adjacency=adjacency)
    trained, whole = (each.gaussian_mu(adjacency=adjacency) for each in (inner, event))
    assert trained <= whole <= trained * (1 + 1e-12)
    # Any less noise would.
    louder = ev.MeasuredFitEvent(inner, cap, event.scale * (1 - 1e-6), delta=1e-6)
    assert louder.gaussian_mu(adjacency=adjacency) > whole


def test_a_replaced_record_that_costs_no_more_than_one_left_out_leaves_no_room():
    counting = ev.SpanStepsEvent(1, 20, 7, 1.0, 0.5, 1e6, 1.0)
    with pytest.raises(ValueError, match="already costs as much"):
        measured_fit_event(counting, spans_per_record=8, adjacency="replace")


@pytest.mark.parametrize(
    "parameters",
    [
        (STEPS, 0, 12.0),
        (STEPS, 8, 0.0),
        (STEPS, 8, 12.0, 1.0),
        # With a delta of its own, without a square of ratios, and no training on spans.
        (ev.SpanStepsEvent(20, 20, 7, 1.0, 0.5, 2.5, 15.0, delta=1e-6), 8, 12.0),
        (ev.PickedFitEvent(STEPS, 5, 12.0, delta=1e-6), 8, 12.0),
        (ev.PickedFitEvent(STEPS, 5, 0.1, "exponential"), 8, 12.0),
        (ev.GradientStepsEvent(20, 20, 7, 1.0, 0.5, 2.5, 15.0), 8, 12.0),
        (ev.MeasuredFitEvent(STEPS, 8, 12.0), 8, 12.0),
    ],
)
def test_what_has_no_price_is_refused(parameters):
    with pytest.raises(ValueError):
        ev.MeasuredFitEvent(*parameters)
