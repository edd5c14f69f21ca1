import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting import events as ev
from privacy.accounting.counts import picked_fit_event

STEPS = ev.CenteredStepsEvent(40, 20, 7, 1.2, 0.3, 4.0, 15.0, center_sigma=20.0)
TILT = ev.ObjectivePerturbationEvent(0.9, 10.0, 0.0, 5, 1e-6, 0.01, "laplace")


@pytest.mark.parametrize(("adjacency", "moved"), [("null", 1), ("add_remove", 1), ("replace", 2)])
def test_price_against_a_second_implementation(adjacency, moved):
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415  # slow import

    event = ev.PickedFitEvent(STEPS, 5, 12.0, delta=1e-6)
    trained = STEPS.gaussian_mu(adjacency=adjacency)
    whole = privacy_loss_distribution.from_gaussian_mechanism(1 / trained)
    whole = whole.compose(privacy_loss_distribution.from_gaussian_mechanism(12.0 / (moved * 2.0)))
    cost = event.cost(adjacency=adjacency)
    assert cost.epsilon == pytest.approx(whole.get_epsilon_for_delta(1e-6), rel=2e-3)
    assert cost.rho == pytest.approx((trained**2 + (moved * 2.0 / 12.0) ** 2) / 2)
    # The twins forget the counts, or that one record moves all of them.
    for ratio in (trained, math.hypot(trained, moved / 12.0)):
        twin = privacy_loss_distribution.from_gaussian_mechanism(1 / ratio)
        assert twin.get_epsilon_for_delta(1e-6) < 0.98 * cost.epsilon


@given(share=st.floats(0.01, 0.9), candidates=st.integers(2, 20), adjacency=st.sampled_from(["null", "replace"]))
def test_the_share_is_one_of_the_squared_ratio(share, candidates, adjacency):
    event = picked_fit_event(STEPS, candidates=candidates, share=share, delta=1e-6, adjacency=adjacency)
    trained, whole = (each.gaussian_mu(adjacency=adjacency) for each in (STEPS, event))
    assert 1 - trained**2 / whole**2 == pytest.approx(share, rel=1e-6)


@pytest.mark.parametrize(("adjacency", "moved"), [("null", 1), ("replace", 2)])
def test_a_draw_by_weights_adds_its_exponent(adjacency, moved):
    event, trained = ev.PickedFitEvent(TILT, 5, 0.1, "exponential"), TILT.cost(adjacency="null")
    inner = TILT if adjacency == "null" else ev.MinibatchSgdEvent(2.0, 5)
    cost = ev.PickedFitEvent(inner, 5, 0.1, "exponential").cost(adjacency=adjacency)
    before = inner.cost(adjacency=adjacency)
    assert cost.epsilon == pytest.approx(before.epsilon + moved * 0.1)
    assert cost.rho == pytest.approx(before.rho + (moved * 0.1) ** 2 / 8)
    assert event.cost().epsilon > trained.epsilon


@given(
    right=st.lists(st.integers(0, 50), min_size=2, max_size=6),
    scale=st.floats(0.01, 3),
    data=st.data(),
)
def test_weights_of_neighbours_differ_by_no_more_than_the_exponent(right, scale, data):
    """One more record is right or wrong under each candidate."""
    more = [count + data.draw(st.integers(0, 1)) for count in right]

    def masses(counts):
        weights = [math.exp(scale * (count - max(counts))) for count in counts]
        return [weight / math.fsum(weights) for weight in weights]

    losses = [math.log(one / other) for one, other in zip(masses(more), masses(right), strict=True)]
    assert max(map(abs, losses)) <= scale * (1 + 1e-9) + 1e-9
    assert max(losses) - min(losses) <= scale * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    "parameters",
    [
        (STEPS, 1, 12.0),
        (STEPS, 101, 12.0),
        (STEPS, 5, 0.0),
        (STEPS, 5, 1.0, "laplace"),
        (STEPS.in_rho(), 5, 1.0, "gaussian", 1.0),
        (STEPS, 5, 1.0, "exponential", 1e-6),
        # What no square of ratios prices, what has a delta of its own, and what is amplified or picked already.
        (TILT, 5, 12.0),
        (ev.SumsEvent(65, 77, 1.05, 12.0, 2.5, delta=1e-6), 5, 12.0),
        (ev.SecretSampleEvent(TILT, 0.2), 5, 0.1, "exponential"),
        (ev.PickedFitEvent(TILT, 5, 0.1, "exponential"), 5, 0.1, "exponential"),
        (ev.LabelTrainingEvent(TILT, "logistic"), 5, 0.1, "exponential"),
    ],
)
def test_what_has_no_price_is_refused(parameters):
    with pytest.raises(ValueError):
        ev.PickedFitEvent(*parameters)
