import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting import cost

amounts = st.floats(0, 1e9, allow_nan=False)


@given(epsilon=amounts)
def test_charge_is_the_smallest_integer_not_below_the_float(epsilon):
    count = cost.epsilon_to_nano(epsilon)
    assert Fraction(count, cost.NANO) >= Fraction(epsilon) > Fraction(count - 1, cost.NANO)


@given(epsilon=amounts)
def test_limit_is_the_largest_integer_not_above_the_float(epsilon):
    count = cost.epsilon_limit_to_nano(epsilon)
    assert Fraction(count, cost.NANO) <= Fraction(epsilon) < Fraction(count + 1, cost.NANO)


@given(delta=st.floats(0, 1))
def test_delta_charge_and_limit_enclose_the_float(delta):
    low, high = cost.delta_limit_to_atto(delta), cost.delta_to_atto(delta)
    assert low <= Fraction(delta) * cost.ATTO <= high <= low + 1


@given(count=st.integers(0, cost.LARGEST))
def test_what_comes_back_is_never_less_than_was_paid(count):
    spent = cost.nano_spent(count)
    assert Fraction(spent) >= Fraction(count, cost.NANO)
    assert Fraction(math.nextafter(spent, -1.0)) < Fraction(count, cost.NANO)
    assert Fraction(cost.atto_spent(count)) >= Fraction(count, cost.ATTO)


@given(count=st.integers(0, 10**16))
def test_spendable_float_costs_no_more_than_its_nanos(count):
    assert cost.epsilon_to_nano(cost.nano_spendable(count)) <= count
    assert cost.delta_to_atto(cost.atto_spendable(count)) <= count
    assert cost.epsilon_to_nano(math.nextafter(cost.nano_spendable(count), math.inf)) > count


def test_tenth_as_a_float_costs_more_than_a_tenth():
    assert cost.epsilon_to_nano(0.1) == 100_000_001
    assert cost.epsilon_to_nano(Decimal("0.1")) == 100_000_000
    assert cost.epsilon_to_nano(cost.nano_spendable(100_000_000)) == 100_000_000


def test_typed_limits_are_taken_exactly():
    assert cost.epsilon_limit_to_nano(0.3) == 299_999_999
    assert cost.epsilon_limit_to_nano(Decimal("0.3")) == 300_000_000
    assert cost.epsilon_limit_to_nano("0.3") == 300_000_000
    assert cost.delta_limit_to_atto(Decimal("1e-6")) == 10**12
    assert cost.rho_limit_to_nano(Fraction(1, 3)) == 333_333_333


@pytest.mark.parametrize(
    ("convert", "scale"),
    [
        (cost.epsilon_to_nano, cost.NANO),
        (cost.rho_to_nano, cost.NANO),
        (cost.mutual_information_to_nano, cost.NANO),
        (cost.delta_to_atto, cost.ATTO),
    ],
)
def test_smallest_float_costs_one_unit(convert, scale):
    assert convert(5e-324) == 1
    assert convert(0.0) == 0
    assert convert(1) == scale


@pytest.mark.parametrize("value", [-1e-300, -1, math.inf, math.nan, 1e10, "one", Decimal("NaN")])
def test_amounts_out_of_range_are_refused_with_the_value(value):
    with pytest.raises(ValueError, match=r"epsilon must be"):
        cost.epsilon_to_nano(value)


@given(value=st.floats(1e-300, 1e300))
def test_outward_is_above_and_close(value):
    assert value < cost.outward(value) <= value * (1 + 2.0**-45)


def test_outward_keeps_nothing_and_everything():
    assert cost.outward(0.0) == 0.0
    assert cost.outward(math.inf) == math.inf
