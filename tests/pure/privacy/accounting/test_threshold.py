import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting import gate_events

epsilons = st.floats(0.05, 4)
deltas = st.floats(-12, -1).map(lambda exponent: 10**exponent)


def output_law(noise, count, lowest_released, floor):
    """Return the law of the gate's output for one text: noisy counts from `lowest_released` on, else None."""
    law = {None: 1.0}
    if count < floor:
        return law
    law = {count + z: p for z, p in noise.items() if count + z >= lowest_released}
    law[None] = 1.0 - math.fsum(law.values())
    return law


def hockey_stick(p, q, epsilon):
    return math.fsum(max(0.0, mass - math.exp(epsilon) * q.get(outcome, 0.0)) for outcome, mass in p.items())


@given(epsilon=epsilons, delta=deltas, floor=st.integers(1, 20))
def test_laplace_threshold_reaches_its_delta_and_no_more(epsilon, delta, floor):
    level = gate_events.laplace_threshold(epsilon, delta, floor)
    assert gate_events.laplace_delta(1 / epsilon, level, floor) <= delta
    assert gate_events.laplace_delta(1 / epsilon, level - 1e-6, floor) > delta * (1 - 1e-9)


def test_laplace_threshold_is_the_textbook_one():
    assert gate_events.laplace_threshold(1.0, 1e-6) == pytest.approx(1 + math.log(5e5), rel=1e-12)
    assert gate_events.laplace_delta(2.0, -1.0) == pytest.approx(1 - math.exp(-1.0) / 2, rel=1e-12)


@given(epsilon=epsilons, delta=deltas, floor=st.integers(1, 20))
def test_discrete_laplace_threshold_is_the_smallest(epsilon, delta, floor):
    level = gate_events.discrete_laplace_threshold(epsilon, delta, floor)
    assert gate_events.discrete_laplace_delta(1 / epsilon, level, floor) <= delta
    if level > floor + 1:
        assert gate_events.discrete_laplace_delta(1 / epsilon, level - 1, floor) > delta


@given(epsilon=epsilons, delta=deltas)
def test_truncated_geometric_bound_is_the_smallest_and_the_published_one(epsilon, delta):
    bound = gate_events.truncated_geometric_bound(epsilon, delta)
    assert gate_events.truncated_geometric_delta(epsilon, bound) <= delta
    assert bound == 0 or gate_events.truncated_geometric_delta(epsilon, bound - 1) > delta
    exact = math.log((math.exp(epsilon) + 2 * delta - 1) / ((math.exp(epsilon) + 1) * delta)) / epsilon
    assert abs(bound - math.ceil(max(0.0, exact))) <= (abs(exact - round(exact)) < 1e-6)


@given(epsilon=st.floats(0.3, 2), bound=st.integers(0, 12), floor=st.integers(1, 5))
def test_truncated_geometric_gate_is_private_at_every_count(epsilon, bound, floor):
    weights = {z: math.exp(-epsilon * abs(z)) for z in range(-bound, bound + 1)}
    total = math.fsum(weights.values())
    noise = {z: weight / total for z, weight in weights.items()}
    delta = gate_events.truncated_geometric_delta(epsilon, bound)
    assert delta == pytest.approx(noise[bound], rel=1e-12)
    laws = [output_law(noise, count, bound + floor, floor) for count in range(3 * bound + floor + 3)]
    for more, fewer in zip(laws[1:], laws, strict=False):
        assert hockey_stick(more, fewer, epsilon) <= delta * (1 + 1e-9) + 1e-12
        assert hockey_stick(fewer, more, epsilon) <= delta * (1 + 1e-9) + 1e-12


def test_a_floor_on_an_unmoved_threshold_is_not_private():
    """The floor alone decides at its edge: the text appears with half its mass when one record arrives."""
    epsilon, delta, floor = 1.0, 1e-6, 15
    q, reach = math.exp(-epsilon), 60
    noise = {z: (1 - q) / (1 + q) * q ** abs(z) for z in range(-reach, reach + 1)}
    unmoved = gate_events.discrete_laplace_threshold(epsilon, delta)
    broken = hockey_stick(
        output_law(noise, floor, unmoved, floor), output_law(noise, floor - 1, unmoved, floor), epsilon
    )
    assert broken > 0.5
    assert gate_events.discrete_laplace_delta(1 / epsilon, unmoved, floor) == pytest.approx(broken, rel=1e-9)
    moved = gate_events.discrete_laplace_threshold(epsilon, delta, floor)
    assert moved == unmoved + floor - 1
    sound = hockey_stick(output_law(noise, floor, moved, floor), output_law(noise, floor - 1, moved, floor), epsilon)
    assert sound == pytest.approx(gate_events.discrete_laplace_delta(1 / epsilon, moved, floor), rel=1e-9)
    assert sound <= delta


@pytest.mark.parametrize(
    ("epsilon", "sigma", "level", "texts", "floor"), [(1.0, 4.0, 20.0, 8, 1), (0.5, 9.0, 60.0, 3, 10)]
)
def test_weighted_gaussian_delta_adds_noise_and_newcomers(epsilon, sigma, level, texts, floor):
    with mpmath.workdps(40):
        s = mpmath.mpf(1) / sigma
        noise = mpmath.ncdf(s / 2 - epsilon / s) - mpmath.exp(epsilon) * mpmath.ncdf(-s / 2 - epsilon / s)
        shown = max(
            1 - mpmath.ncdf((level - (floor - 1) - 1 / mpmath.sqrt(j)) / sigma) ** j for j in range(1, texts + 1)
        )
        expected = float(noise + shown)
    computed = gate_events.weighted_gaussian_delta(epsilon, sigma, level, texts, floor)
    assert computed == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "texts", "floor"), [(1.0, 1e-6, 1, 1), (1.0, 1e-6, 10, 5), (0.3, 1e-9, 50, 1)]
)
def test_weighted_gaussian_noise_meets_its_delta(epsilon, delta, texts, floor):
    sigma, level = gate_events.weighted_gaussian_noise(epsilon, delta, texts, floor)
    assert gate_events.weighted_gaussian_delta(epsilon, sigma, level, texts, floor) <= delta
    assert gate_events.weighted_gaussian_delta(epsilon, sigma, level * 0.99, texts, floor) > delta
    assert gate_events.weighted_gaussian_delta(epsilon, sigma * 0.98, level, texts, floor) > delta * 0.5


@pytest.mark.parametrize(
    ("function", "arguments", "seen"),
    [
        (gate_events.laplace_delta, (0.0, 3.0), "got 0.0"),
        (gate_events.laplace_threshold, (1.0, 1.0), "got 1.0"),
        (gate_events.discrete_laplace_delta, (1.0, 3.0, 0), "got 0"),
        (gate_events.truncated_geometric_delta, (1.0, -1), "got -1"),
        (gate_events.weighted_gaussian_delta, (1.0, 1.0, 3.0, 0), "got 0"),
        (gate_events.weighted_gaussian_noise, (-1.0, 0.1, 2), "got -1.0"),
    ],
)
def test_refusals_name_the_value(function, arguments, seen):
    with pytest.raises(ValueError, match=seen):
        function(*arguments)
