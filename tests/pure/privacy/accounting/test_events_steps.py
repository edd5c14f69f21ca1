import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.composition import gaussian_epsilon
from privacy.accounting.steps import (
    CenteredStepsEvent,
    GradientStepsEvent,
    SpanStepsEvent,
    gradient_steps_event,
    span_steps_event,
)


@given(
    epsilon=st.floats(0.01, 10),
    exponent=st.floats(-12, -2),
    steps=st.integers(1, 200),
    bound=st.floats(0.1, 10),
    residual=st.floats(0.05, 2),
    adjacency=st.sampled_from(["null", "replace", "add_remove"]),
    center=st.sampled_from([0.0, 0.02, 0.5]),
)
def test_solved_events_cost_what_was_asked_and_hardly_less(
    epsilon, exponent, steps, bound, residual, adjacency, center
):
    delta = 10.0**exponent
    shape = {"dimension": 4, "n_classes": 5, "norm_bound": bound, "residual_bound": residual, "center_share": center}
    event = gradient_steps_event(epsilon, delta, steps=steps, adjacency=adjacency, **shape)
    cost = event.cost(adjacency=adjacency)
    assert 0.9999 * epsilon <= cost.epsilon <= epsilon
    assert 0.999 * delta <= cost.delta <= delta
    assert isinstance(event, CenteredStepsEvent) == bool(center)


def test_price_against_a_second_implementation():
    """The accountant of the `dp_accounting` library composes 40 steps and a count to the same epsilon."""
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415  # slow import

    event = GradientStepsEvent(40, 20, 7, 1.2, 0.3, 4.0, 15.0, delta=1e-6)
    step = privacy_loss_distribution.from_gaussian_mechanism(4.0 / (1.2 * 0.3)).self_compose(40)
    whole = step.compose(privacy_loss_distribution.from_gaussian_mechanism(15.0))
    other = whole.get_epsilon_for_delta(1e-6)
    assert event.cost().epsilon == pytest.approx(other, rel=2e-3)
    mu = math.sqrt(40 * (1.2 * 0.3 / 4.0) ** 2 + 1 / 15.0**2)
    assert event.cost().rho == pytest.approx(mu**2 / 2)
    # On top comes what each grid may differ by from the continuous law.
    assert event.cost().epsilon >= gaussian_epsilon(mu, 1e-6) + 41 * 0.99e-8


@pytest.mark.parametrize(("adjacency", "times"), [("null", 1), ("add_remove", 1), ("replace", 2)])
def test_a_sum_of_rows_is_one_more_release(adjacency, times):
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415  # slow import

    event = CenteredStepsEvent(40, 20, 7, 1.2, 0.3, 4.0, 15.0, delta=1e-6, center_sigma=20.0)
    whole = privacy_loss_distribution.from_gaussian_mechanism(4.0 / (times * 1.2 * 0.3)).self_compose(40)
    whole = whole.compose(privacy_loss_distribution.from_gaussian_mechanism(20.0 / (times * 1.2)))
    if times == 1:
        whole = whole.compose(privacy_loss_distribution.from_gaussian_mechanism(15.0))
    cost = event.cost(adjacency=adjacency)
    assert cost.epsilon == pytest.approx(whole.get_epsilon_for_delta(1e-6), rel=2e-3)
    # The twin forgets the sum.
    steps = GradientStepsEvent(40, 20, 7, 1.2, 0.3, 4.0, 15.0, delta=1e-6)
    assert steps.cost(adjacency=adjacency).epsilon < 0.998 * cost.epsilon
    assert event.in_rho().cost(adjacency=adjacency).rho == pytest.approx(
        event.gaussian_mu(adjacency=adjacency) ** 2 / 2
    )


def test_a_share_for_the_sum_takes_from_the_steps():
    shape = {"steps": 40, "dimension": 4, "n_classes": 5, "norm_bound": 1.0, "residual_bound": 0.3}
    without, half = (gradient_steps_event(1.0, 1e-6, center_share=share, **shape) for share in (0.0, 0.495))
    assert half.sigma == pytest.approx(without.sigma * math.sqrt(2), rel=1e-4)
    for share in (-0.1, 0.99, math.nan):
        with pytest.raises(ValueError, match="center_share"):
            gradient_steps_event(1.0, 1e-6, center_share=share, **shape)


def test_more_steps_and_less_noise_cost_more():
    price = [GradientStepsEvent(steps, 3, 3, 1.0, 0.3, 5.0, 9.0, delta=1e-6).cost().epsilon for steps in (1, 10, 40)]
    assert price == sorted(price)
    loud, quiet = (GradientStepsEvent(9, 3, 3, 1.0, 0.3, sigma, 9.0, delta=1e-6).cost().epsilon for sigma in (5, 4))
    assert loud < quiet


@pytest.mark.parametrize(
    "change",
    [{"steps": 0}, {"steps": 1001}, {"sigma": 0.0}, {"count_sigma": -1.0}, {"residual_bound": 0.0}, {"delta": 1.0}],
)
def test_what_has_no_price_is_refused(change):
    values = {
        "steps": 4,
        "dimension": 3,
        "n_classes": 3,
        "norm_bound": 1.0,
        "residual_bound": 0.3,
        "sigma": 2.0,
        "count_sigma": 9.0,
    }
    with pytest.raises(ValueError):
        GradientStepsEvent(**(values | change))
    if "delta" not in change:
        with pytest.raises(ValueError):
            CenteredStepsEvent(**(values | change), center_sigma=1.0)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, math.nan])
def test_a_sum_without_noise_is_refused(sigma):
    with pytest.raises(ValueError, match="center_sigma"):
        CenteredStepsEvent(4, 3, 3, 1.0, 0.3, 2.0, 9.0, center_sigma=sigma)


@pytest.mark.parametrize("center", [{}, {"center_sigma": 15.0}])
def test_a_replaced_row_moves_the_count_as_well(center):
    """A row against a blank one: without the count a release of it was charged up to 600 times too little."""
    kind = CenteredStepsEvent if center else GradientStepsEvent
    event = kind(4, 3, 3, 1.0, 0.3, 500.0, 1.0, **center)
    null, replaced = (event.gaussian_mu(adjacency=adjacency) for adjacency in ("null", "replace"))
    assert replaced >= null >= 1
    loud = replace(event, sigma=0.5, count_sigma=500.0)
    steps = 2 * math.sqrt(4) * 0.3 / 0.5
    assert loud.gaussian_mu(adjacency="replace") == pytest.approx(math.hypot(steps, 2 / 15 if center else 0))


@pytest.mark.parametrize(("adjacency", "times"), [("null", 1), ("add_remove", 1), ("replace", 2)])
def test_a_text_moves_each_step_by_its_clip(adjacency, times):
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415  # slow import

    event = span_steps_event(2.0, 1e-6, steps=40, dimension=851, n_tags=11, clip=0.5, adjacency=adjacency)
    whole = privacy_loss_distribution.from_gaussian_mechanism(event.sigma / (times * 0.5)).self_compose(40)
    if times == 1:
        whole = whole.compose(privacy_loss_distribution.from_gaussian_mechanism(event.count_sigma))
    assert whole.get_epsilon_for_delta(1e-6) == pytest.approx(2.0, rel=2e-2)
    assert 1.999 < event.cost(adjacency=adjacency).epsilon <= 2.0
    with pytest.raises(ValueError, match="norm_bound"):
        SpanStepsEvent(40, 851, 11, 2.0, 0.5, 4.0, 20.0)
