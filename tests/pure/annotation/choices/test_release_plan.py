import pytest

from annotation.choices.release_plan import ReleasePlan
from privacy.choices import BrokenRules


def test_a_pool_trains_on_two_questions_at_least():
    one = ReleasePlan(labels_per_release=1)
    assert one.rules({"arrival": "pool"}).keys() == {"labels_per_release"}
    assert not one.rules({"arrival": "stream"})
    assert not ReleasePlan(labels_per_release=2).rules({"arrival": "pool"})


@pytest.mark.parametrize("numbers", [{"labels_per_release": 0}, {"maximum_releases": 0}, {"labels_per_release": None}])
def test_numbers_that_would_release_nothing_are_refused(numbers):
    with pytest.raises(BrokenRules):
        ReleasePlan(**numbers)


def test_it_costs_nothing_and_may_change():
    assert ReleasePlan().event() is None
    assert not ReleasePlan.stays
