from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addons.prolific.costs import StudyCost, cost_of, in_cents, money, together, with_fee


@pytest.mark.parametrize(
    ("cents", "fee", "cost"),
    [(0, "33", 0), (100, "0", 100), (100, "33.33", 134), (300, "33.33", 400), (1, "0.01", 2), (250, "42.8", 357)],
)
def test_the_fee_is_added_and_rounded_up(cents, fee, cost):
    assert with_fee(cents, Decimal(fee)) == cost


@given(cents=st.integers(0, 10**9), fee=st.decimals(0, 100, places=2))
def test_it_is_never_less_than_the_exact_amount_nor_a_hundredth_more(cents, fee):
    exact = cents * (100 + fee) / 100
    assert exact <= with_fee(cents, fee) < exact + 1


def test_a_study_that_is_over_pays_for_approved_places_alone():
    values = {"reward_cents": 200, "fee_percent": Decimal(50), "places": 10, "bonus_cents": 100}
    assert cost_of(**values, approved=3, is_over=False) == StudyCost(promised=3150, so_far=1050)
    assert cost_of(**values, approved=3, is_over=True) == StudyCost(promised=1050, so_far=1050)
    # Places were added on the platform itself.
    assert cost_of(**values, approved=12, is_over=False).promised == 3750


def test_sums():
    assert together([StudyCost(3, 1), StudyCost(4, 2)]) == StudyCost(7, 3)
    assert together([]) == StudyCost(0, 0)
    assert money(1234) == Decimal("12.34")
    assert in_cents(Decimal("12.3")) == 1230
