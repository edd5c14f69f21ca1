import re

import pytest

from annotation.budget.words import plain_meaning
from privacy.accounting.composition import reading

NUMBERS = r"guesses right at most (\S+) % .* finds (\S+) % of members .* advantage at most (\S+)\.$"


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0, 8.0, 10.0, 12.0])
def test_every_number_is_a_bound_and_less_than_all(epsilon):
    said = [float(number) for number in re.search(NUMBERS, plain_meaning(epsilon, 5e-6)).groups()]
    bounds = reading(epsilon, 5e-6)
    exact = [100 * bounds.right, 100 * bounds.detection, bounds.advantage]
    for number, bound, most in zip(said, exact, (100, 100, 1), strict=True):
        assert bound - 1e-9 <= number < min(most, bound + most / 500)
