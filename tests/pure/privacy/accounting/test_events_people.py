import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting import events as ev
from privacy.accounting.cost import Cost, NoProof, float_at_least

GATE = ev.KAnonymityGateEvent(60, 0.2, 0.1, "contributor", 5)


def people(event, number, unit="contributor"):
    return ev.PeopleEvent(event, unit, number, "project:a:pool", 1)


@given(st.floats(0, 3), st.just(0.0) | st.floats(1e-18, 0.01), st.integers(1, 8))
def test_a_group_is_so_many_steps(epsilon, delta, size):
    """(eps, delta) of neighbours, walked one record after another: each step multiplies what is left by e^eps."""
    walked = 0.0
    for _ in range(size):
        walked = walked * math.exp(epsilon) + delta
    cost = Cost(epsilon, delta).of_group(size)
    assert cost.epsilon == float_at_least(Fraction(epsilon) * size)
    assert cost.delta == pytest.approx(min(1.0, walked), rel=1e-9)
    assert cost.delta >= min(1.0, walked) * (1 - 1e-12)


@given(st.floats(0, 10), st.floats(0, 10), st.integers(1, 100))
def test_rho_grows_by_the_square(epsilon, rho, size):
    cost = Cost(epsilon, 0.0, rho).of_group(size)
    assert (cost.epsilon, cost.rho) == (float_at_least(Fraction(epsilon) * size), pytest.approx(size**2 * rho))


def test_a_group_of_one_is_the_record():
    cost = Cost(0.5, 1e-6, 0.1, 0.3)
    assert cost.of_group(1) is cost


def test_a_group_of_two_costs_what_a_replacement_does():
    for cost in (Cost(0.5), Cost(0.5, 1e-6), Cost(math.inf, 0.0, 0.25)):
        two, replaced = cost.of_group(2), cost.of_two_steps()
        assert (two.epsilon, two.rho) == (replaced.epsilon, replaced.rho)
        assert two.delta == pytest.approx(replaced.delta)


def test_a_certain_delta_stays_one():
    assert Cost(800.0, 1e-300).of_group(2).delta == 1.0


def test_information_about_several_records_has_no_bound():
    assert Cost(0.5, mutual_information=0.1).of_group(2).mutual_information == math.inf
    assert Cost(0.5).of_group(2).mutual_information == 0


@pytest.mark.parametrize("size", [0, -1])
def test_nobody_is_no_group(size):
    with pytest.raises(ValueError, match="size must be >= 1"):
        Cost(0.5).of_group(size)


def test_a_person_of_a_gate_is_the_gates_contributor():
    assert people(GATE, 1).cost() == GATE.cost()


@pytest.mark.parametrize(
    ("event", "unit", "number", "rule"),
    [
        (GATE, "contributor", 2, "records per person must be 1"),
        (GATE, "record", 1, "only a population of contributors"),
        (ev.RandomizedAnswersEvent(2.0, 18), "contributor", 1, "cannot join a population"),
        (ev.GaussianEvent(1.0, 9.0), "contributor", 0, "records_per_person must be an integer >= 1"),
        (ev.GaussianEvent(1.0, 9.0), "contributor", 10_001, "records_per_person must be <= 10000"),
        (ev.GaussianEvent(1.0, 9.0), "answer", 1, "unit must be one of"),
    ],
)
def test_what_has_no_conversion_is_refused_by_its_rule(event, unit, number, rule):
    with pytest.raises(ValueError, match=rule):
        people(event, number, unit)


def test_gaussian_noise_beside_a_delta_has_no_group():
    """Approximate zCDP composes, and has no group privacy that anybody proved."""
    event = ev.GaussianEvent(1.0, 9.0, delta=1e-6)
    if math.isfinite(event.cost().epsilon):
        assert people(event, 2).cost().delta > event.cost().delta
    else:
        with pytest.raises(NoProof, match="group privacy"):
            people(event, 2).cost()
    assert people(event, 1).cost() == event.cost()


def test_a_series_has_no_price_for_a_group_where_it_has_a_delta():
    """The delta of its opening was counted for one record; a group's would need the epsilon of later blocks."""
    training = ev.GaussianEvent(1.0, 9.0, delta=1e-6)
    rates = (0.2, 0.2)
    first = ev.SecretBlockEvent.next_of(None, training, block=1, rates=rates)
    assert people(first, 1, "record").cost() == first.cost()
    with pytest.raises(NoProof, match="epsilon of the whole series"):
        people(first, 2).cost()
    pure = ev.SecretBlockEvent.next_of(None, ev.MinibatchSgdEvent(1.0, 3), block=1, rates=rates)
    assert people(pure, 2).cost().epsilon == 2 * pure.cost().epsilon
