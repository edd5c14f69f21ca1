import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.sums import SecondMomentsEvent, second_moments_event
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from privacy.mechanisms.second_moments import STEPS, exact_moments, release_second_moments, shortened_rows

NEIGHBOURS = 10_000


def unit_rows(rng, count, d):
    """Rows on the sphere: spread, along one column, and with entries of equal size, the worst of each norm."""
    rows = rng.normal(size=(count, d))
    rows[::4] = np.eye(d)[rng.integers(d, size=len(rows[::4]))]
    rows[1::4] = rng.choice([-1.0, 1.0], size=rows[1::4].shape)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) * (1 - 1e-12)


@pytest.mark.parametrize("adjacency", ["null", "replace"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("d", [1, 3, 8])
def test_empirical_sensitivity(noise, adjacency, d):
    """10,000 neighbours: what one slot moves is its own x x^T, exactly."""
    rng = np.random.default_rng(20_251_101)
    event = SecondMomentsEvent(d, 1.0, 1.0, noise)
    first = shortened_rows(unit_rows(rng, NEIGHBOURS, d), norm_bound=1.0)
    second = shortened_rows(unit_rows(rng, NEIGHBOURS, d), norm_bound=1.0)
    upper = np.triu_indices(d)
    moved = np.einsum("ni,nj->nij", first, first)
    if adjacency == "replace":
        # Half of the signs turned, the pair that differs most in L1.
        half = np.where(np.arange(d) < d / 2, -1, 1)
        second[1::4] = first[1::4] * half
        second[2::4] = 0
        moved -= np.einsum("ni,nj->nij", second, second)
    moved = moved[:, *upper] / STEPS**2
    order = 1 if noise == "laplace" else 2
    lengths = np.linalg.norm(moved, ord=order, axis=1)
    stated = event.sensitivity(adjacency)
    assert lengths.max() <= stated
    assert lengths.max() >= 0.5 * stated


def test_sums_do_not_depend_on_order_or_blocks():
    rng = np.random.default_rng(3)
    rows = unit_rows(rng, 5_000, 6)
    whole = exact_moments([rows], dimension=6, norm_bound=1.0)
    parts = exact_moments([rows[3_000:][::-1], rows[:3_000]], dimension=6, norm_bound=1.0)
    assert (whole == parts).all()
    without = exact_moments([rows[1:]], dimension=6, norm_bound=1.0)
    steps = shortened_rows(rows[:1], norm_bound=1.0)
    assert (whole - without == steps.T @ steps).all()


def test_shortening_never_lengthens_and_long_rows_are_refused():
    rows = unit_rows(np.random.default_rng(4), 1_000, 5) * 0.3
    steps = shortened_rows(rows, norm_bound=0.3)
    assert (np.abs(steps) <= np.abs(rows) * STEPS / 0.3).all()
    for bad in ([1.01, 0.0], [np.nan, 0.0], [np.inf, 0.0]):
        with pytest.raises(ValueError, match="clip them first"):
            shortened_rows(np.array([bad]), norm_bound=1.0)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_release_is_symmetric_and_near_the_truth(delta):
    rng = np.random.default_rng(5)
    rows = unit_rows(rng, 4_000, 4)
    event = second_moments_event(1.0, 4, delta=delta)
    truth = rows.T @ rows
    for source in (SecureRandom(), SimulationRandom(1)):
        noisy = release_second_moments([rows], event, rng=source)
        assert (noisy == noisy.T).all()
        # Entries are off by less than 12 scales but once in 100,000 runs; rounding to the grid adds a few units.
        assert np.abs(noisy - truth).max() < 12 * event.noise_scale + 10
        assert np.abs(noisy - truth).max() > 0


@given(epsilon=st.floats(0.01, 10), d=st.integers(1, 200), bound=st.floats(0.1, 10), gaussian=st.booleans())
def test_solved_events_cost_what_was_asked_and_hardly_less(epsilon, d, bound, gaussian):
    event = second_moments_event(epsilon, d, norm_bound=bound, delta=1e-6 if gaussian else 0.0)
    assert 0.999 * epsilon <= event.cost().epsilon <= epsilon
    if not gaussian:
        assert event.noise_scale == pytest.approx(bound**2 * (d + 1) / 2 / epsilon, rel=1e-9)
        assert event.gaussian_mu() is None
    else:
        assert event.cost().rho == pytest.approx((bound**2 / event.noise_scale) ** 2 / 2, rel=1e-6)
        assert event.gaussian_mu() == pytest.approx(bound**2 / event.noise_scale, rel=1e-9)


def test_prices_grow_with_what_a_record_can_move():
    prices = [SecondMomentsEvent(d, 1.0, 10.0).cost().epsilon for d in (1, 2, 10, 100)]
    assert prices == sorted(prices)
    assert prices[0] == pytest.approx(0.1)
    for noise in ("laplace", "gaussian"):
        event = SecondMomentsEvent(10, 1.0, 10.0, noise)
        assert event.sensitivity("null") < event.sensitivity("replace") <= 2 * event.sensitivity("null")
    assert SecondMomentsEvent(10, 1.0, 10.0, "gaussian").sensitivity("replace") == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    "wrong", [{"dimension": 0}, {"norm_bound": 0.0}, {"noise_scale": -1.0}, {"noise": "k_norm"}, {"delta": 0.1}]
)
def test_parameters_out_of_range(wrong):
    with pytest.raises(ValueError):
        SecondMomentsEvent(**({"dimension": 3, "norm_bound": 1.0, "noise_scale": 1.0} | wrong))
    with pytest.raises(ValueError):
        second_moments_event(0.0, 3)
