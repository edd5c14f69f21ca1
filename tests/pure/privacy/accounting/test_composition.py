import math

import mpmath
import pytest
from dp_accounting import dp_event, gaussian_mechanism
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting import composition as comp
from privacy.accounting.events import (
    BernoulliScreenEvent,
    GaussianEvent,
    KAnonymityGateEvent,
    PostProcessingEvent,
    SecretSampleEvent,
)

deltas = st.floats(-15, -0.1).map(lambda exponent: 10**exponent)


def exact_gaussian_delta(mu, epsilon):
    with mpmath.workdps(80):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))


@given(rho=st.floats(0, 50), delta=deltas)
def test_zcdp_guarantee(rho, delta):
    with mpmath.workdps(50):
        expected = float(mpmath.mpf(rho) + 2 * mpmath.sqrt(mpmath.mpf(rho) * mpmath.log(1 / mpmath.mpf(delta))))
    assert comp.zcdp_epsilon(rho, delta) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@given(epsilon=st.floats(1e-6, 50), delta=deltas)
def test_rho_limit_is_the_largest_that_keeps_the_guarantee(epsilon, delta):
    rho = comp.zcdp_rho_limit(epsilon, delta)
    assert comp.zcdp_epsilon(rho, delta) <= epsilon
    assert comp.zcdp_epsilon(rho * (1 + 1e-9), delta) > epsilon * (1 - 1e-12)
    assert comp.zcdp_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-9)


@given(rho=st.floats(1e-4, 2), delta=st.floats(-9, -3).map(lambda exponent: 10**exponent))
def test_zcdp_guarantee_is_above_the_exact_gaussian_curve(rho, delta):
    assert comp.gaussian_delta(math.sqrt(2 * rho), comp.zcdp_epsilon(rho, delta)) <= delta


@pytest.mark.parametrize(("sensitivity", "sigma"), [(1.0, 1.0), (3.0, 2.0), (0.25, 1.5)])
@pytest.mark.parametrize("order", [1.5, 4.0])
def test_gaussian_rho_is_the_slope_of_its_renyi_divergence(sensitivity, sigma, order):
    """By quadrature of the two densities, which knows no formula for rho."""

    def power_mean(x):
        far, near = (mpmath.npdf(x, centre, sigma) for centre in (sensitivity, 0))
        return far**order * near ** (1 - order)

    with mpmath.workdps(30):
        divergence = mpmath.log(mpmath.quad(power_mean, [-40, 0, sensitivity, 60])) / (order - 1)
        assert comp.gaussian_rho(sensitivity, sigma) == pytest.approx(float(divergence / order), rel=1e-9)


@pytest.mark.parametrize("loss_range", [0.5, 2.0])
def test_the_rho_of_a_bounded_range_covers_two_outcomes_that_reach_it(loss_range):
    """Of all pairs whose losses fill the range, the worst two-point one comes near the bound, and none exceeds it."""
    bound = comp.bounded_range_rho(loss_range)
    found = []
    for low in (-loss_range * step / 40 for step in range(1, 40)):
        # Both distributions add up to one: the losses of the two outcomes are `low` and `low + range`.
        rare = -math.expm1(-low) / (math.exp(-low - loss_range) - math.exp(-low))
        losses = [(rare, low + loss_range), (1 - rare, low)]
        for order in (1.01, 1.5, 3.0, 8.0):
            divergence = math.log(sum(p * math.exp((order - 1) * loss) for p, loss in losses)) / (order - 1)
            found.append(divergence / order)
    assert 0.9 * bound < max(found) <= bound


@given(mu=st.floats(0.001, 20), epsilon=st.floats(0, 30))
def test_gaussian_delta_to_nine_digits(mu, epsilon):
    exact = exact_gaussian_delta(mu, epsilon)
    if exact > 1e-15:
        assert comp.gaussian_delta(mu, epsilon) == pytest.approx(exact, rel=1e-9)
    else:
        assert comp.gaussian_delta(mu, epsilon) <= 1.1e-15


@pytest.mark.parametrize(("mu", "epsilon"), [(1e-4, 1e-4), (1e-3, 0.005), (100.0, 10.0), (45.0, 500.0), (60.0, 0.0)])
def test_gaussian_delta_at_the_ends(mu, epsilon):
    assert comp.gaussian_delta(mu, epsilon) == pytest.approx(exact_gaussian_delta(mu, epsilon), rel=1e-9)


@given(mu=st.floats(0.01, 10), delta=st.floats(-12, -0.5).map(lambda exponent: 10**exponent))
def test_gaussian_epsilon_inverts_its_delta(mu, delta):
    epsilon = comp.gaussian_epsilon(mu, delta)
    assert comp.gaussian_delta(mu, epsilon) <= delta
    if epsilon > 0:
        assert comp.gaussian_delta(mu, epsilon * (1 - 1e-9)) >= delta * (1 - 1e-6)


@pytest.mark.parametrize(("sigma", "delta"), [(1.0, 1e-5), (3.7, 1e-6), (0.5, 1e-9)])
def test_gaussian_epsilon_agrees_with_a_second_implementation(sigma, delta):
    assert comp.gaussian_epsilon(1 / sigma, delta) == pytest.approx(
        gaussian_mechanism.get_epsilon_gaussian(sigma, delta), rel=1e-6
    )


def test_range_conversion():
    # A pure loss of epsilon has range at most 2 epsilon, where both conversions agree.
    assert comp.bounded_range_rho(4.0) == 2.0**2 / 2
    assert comp.bounded_range_rho(2.0) == 0.5


@given(lo=st.floats(-3, 0), hi=st.floats(0.01, 3), order=st.floats(1.01, 50))
def test_range_conversion_holds_for_the_extreme_pair(lo, hi, order):
    """The two-point law with losses lo and hi has the largest Renyi divergence of its range."""
    lo = min(lo, -0.01)
    q_hi = (1 - math.exp(lo)) / (math.exp(hi) - math.exp(lo))
    with mpmath.workdps(40):
        moment = q_hi * mpmath.exp(order * hi) + (1 - q_hi) * mpmath.exp(order * lo)
        divergence = float(mpmath.log(moment) / (order - 1))
    assert divergence <= order * comp.bounded_range_rho(hi - lo) * (1 + 1e-9) + 1e-12


def test_pld_of_gaussians_agrees_with_a_second_accountant():
    events = [GaussianEvent(1.0, 4.0)] * 5
    accountant = PLDAccountant()
    accountant.compose(dp_event.GaussianDpEvent(4.0), 5)
    ours = comp.pld_epsilon(events, 1e-5)
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)
    exact = comp.gaussian_epsilon(0.25 * math.sqrt(5), 1e-5)
    assert exact <= ours <= exact * 1.01


def test_pld_is_below_the_sums_and_above_nothing():
    events = [BernoulliScreenEvent(0.55, 0.45)] * 30 + [KAnonymityGateEvent(40, 0.2, 0.3), PostProcessingEvent("rank")]
    together = comp.pld_epsilon(events, 1e-5)
    assert 0 < together < sum(event.cost().epsilon for event in events)


def test_pld_of_an_event_without_epsilon_is_infinite():
    class Unpriced:
        def cost(self, *, adjacency="null"):
            return comp.Cost(math.inf, rho=1.0)

        def gaussian_mu(self, *, adjacency="null"):
            return None

    assert comp.pld_epsilon([Unpriced()], 1e-5) == math.inf
    assert comp.pld_epsilon([], 1e-5) == 0.0


def test_secret_sample_agrees_with_a_second_accountant():
    """Randomised response with loss one on a sample of a fifth: the library's distribution of the mixture."""
    kept = math.e / (1 + math.e)
    inner = BernoulliScreenEvent(kept, 1 - kept)
    base = {0: math.log(kept), 1: math.log(1 - kept)}
    sampled = {0: math.log(0.8 * kept + 0.2 * (1 - kept)), 1: math.log(0.8 * (1 - kept) + 0.2 * kept)}
    pld = privacy_loss_distribution.from_two_probability_mass_functions(base, sampled, pessimistic_estimate=True)
    ours = SecretSampleEvent(inner, 0.2).cost().epsilon
    assert ours == pytest.approx(math.log1p(0.2 * math.expm1(1.0)), rel=1e-9)
    assert pld.get_epsilon_for_delta(0.0) == pytest.approx(ours, rel=1e-3)


@pytest.mark.parametrize(
    ("function", "arguments", "seen"),
    [
        (comp.zcdp_epsilon, (-1.0, 1e-6), "got -1.0"),
        (comp.zcdp_epsilon, (1.0, 0.0), "got 0.0"),
        (comp.zcdp_rho_limit, (1.0, 1.0), "got 1.0"),
        (comp.gaussian_delta, (-1.0, 1.0), "got -1.0"),
        (comp.gaussian_delta, (1.0, math.nan), "got nan"),
        (comp.gaussian_rho, (1.0, 0.0), "got 0.0"),
        (comp.bounded_range_rho, (-2.0,), "got -2.0"),
    ],
)
def test_refusals_name_the_value(function, arguments, seen):
    with pytest.raises(ValueError, match=seen):
        function(*arguments)
