import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privacy.accounting.cost import Cost

AMOUNTS = st.floats(0, 1e6)
DELTAS = st.floats(0, 1)


@example(1.096159828147091e-47, 0.1, 3)
@given(AMOUNTS, DELTAS, st.integers(0, 10**6))
def test_many_cost_no_less_than_so_many_times_one(epsilon, delta, count):
    one = Cost(epsilon, delta, rho=epsilon / 3, mutual_information=epsilon)
    many = one.times(count)
    assert Fraction(many.epsilon) >= Fraction(one.epsilon) * count
    assert Fraction(many.rho) >= Fraction(one.rho) * count
    assert Fraction(many.mutual_information) >= Fraction(one.mutual_information) * count
    assert many.delta == 1 or Fraction(many.delta) >= Fraction(delta) * count
    assert many.epsilon <= epsilon * count * (1 + 2.0**-51)


@given(AMOUNTS, AMOUNTS, DELTAS, DELTAS)
def test_two_cost_no_less_than_their_sum(one, other, delta, more):
    together = Cost(one, delta).plus(Cost(other, more))
    assert Fraction(together.epsilon) >= Fraction(one) + Fraction(other)
    assert together.delta == 1 or Fraction(together.delta) >= Fraction(delta) + Fraction(more)
    assert together.epsilon <= (one + other) * (1 + 2.0**-51)


@given(st.floats(1e-100, 1e6), st.integers(2, 1000))
def test_rho_of_a_loss_and_of_a_group_is_rounded_up(epsilon, size):
    cost = Cost(epsilon)
    assert Fraction(cost.rho) >= Fraction(epsilon) ** 2 / 2
    group = cost.of_group(size)
    assert Fraction(group.epsilon) >= Fraction(epsilon) * size
    assert Fraction(group.rho) >= Fraction(cost.rho) * size**2


def test_the_nearest_float_may_lie_below():
    """What these tests would not see if no product fell short."""
    assert Fraction(3 * 1.096159828147091e-47) < 3 * Fraction(1.096159828147091e-47)


@pytest.mark.parametrize("epsilon", [math.nan, -1.0])
def test_what_is_no_amount_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        Cost(epsilon)
