import pytest

from annotation.choices.stream_plan import StreamPlan
from privacy.choices import BrokenRules

POOL = {"oracle": "trusted", "arrival": "pool", "data_kind": "text"}


def test_a_pool_keeps_the_defaults():
    assert StreamPlan.broken_by(POOL | {"drop_unselected": True, "windows_ahead": 2}).keys() == {
        "drop_unselected",
        "windows_ahead",
    }
    assert not StreamPlan.broken_by(POOL)
    assert not StreamPlan.broken_by(POOL | {"arrival": "stream", "drop_unselected": True, "windows_ahead": 2})


@pytest.mark.parametrize("name", ["windows_ahead", "updates_per_release"])
def test_none_at_a_time_is_refused(name):
    with pytest.raises(BrokenRules):
        StreamPlan(**{name: 0})


def test_it_costs_nothing_and_may_change():
    assert StreamPlan().event() is None
    assert not StreamPlan.stays
