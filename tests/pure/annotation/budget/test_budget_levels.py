import re

import pytest
from django.utils import translation

from annotation.budget.budget_levels import plain_meaning
from privacy.accounting.composition import reading

NUMBERS = r"guesses rightly at most (\S+) % .* find at most (\S+) % .* advantage of any test is (\S+)\.$"


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0, 8.0, 10.0, 12.0])
def test_every_number_is_a_bound_and_less_than_all(epsilon):
    said = [float(number) for number in re.search(NUMBERS, plain_meaning(epsilon, 5e-6)).groups()]
    bounds = reading(epsilon, 5e-6)
    exact = [100 * bounds.right, 100 * bounds.detection, bounds.advantage]
    for number, bound, most in zip(said, exact, (100, 100, 1), strict=True):
        assert bound - 1e-9 <= number < min(most, bound + most / 500)


def test_a_share_near_all_has_as_many_places_as_it_needs():
    assert re.search(NUMBERS, plain_meaning(3, 5e-6)).groups() == ("95.3", "20.1", "0.906")
    assert re.search(NUMBERS, plain_meaning(10, 5e-6)).groups() == ("99.996", "99.996", "0.99991")
    with translation.override("de"):
        assert "in höchstens 99,996 % der Fälle" in plain_meaning(10, 5e-6)


def test_what_bounds_nothing_is_said_without_places():
    assert re.search(NUMBERS, plain_meaning(60, 0)).groups() == ("100", "100", "1")
