import pytest

from annotation.choices.quality_checks import QualityChecks
from privacy.choices import BrokenRules


@pytest.mark.parametrize(
    ("warn", "pause", "refused"), [(0.8, 0.6, False), (0.8, 0.8, False), (0.6, 0.8, True), (None, 0.8, False)]
)
def test_a_pause_comes_after_the_warning(warn, pause, refused):
    assert bool(QualityChecks(gold_warn_below=warn, gold_pause_below=pause).rules({})) == refused


@pytest.mark.parametrize(("oracle", "refused"), [("crowd", True), ("trusted", False)])
def test_a_crowds_answers_stand_where_they_agree(oracle, refused):
    assert bool(QualityChecks(reviewed="all").rules({"oracle": oracle})) == refused
    assert not QualityChecks().rules({"oracle": oracle})


@pytest.mark.parametrize(
    "numbers", [{"gold_share": 1.1}, {"gold_share": -0.1}, {"gold_minimum": 0}, {"aggregation": "guess"}]
)
def test_what_is_no_share_is_refused(numbers):
    with pytest.raises(BrokenRules) as refused:
        QualityChecks(**numbers)
    assert refused.value.broken.keys() == numbers.keys()


def test_it_costs_nothing_and_may_change():
    assert QualityChecks().event() is None
    assert not QualityChecks.stays


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"oracle": "crowd"}, "its answers stand"),
        ({"oracle": "trusted", "selection": "secret_sample"}, "the choice of questions is secret"),
        (
            {"oracle": "trusted", "arrival": "stream", "update_policy": "flsw_hidden"},
            "the choice of questions is secret",
        ),
        ({"oracle": "trusted", "arrival": "stream", "update_policy": "flmb"}, "Not in a stream"),
        ({"oracle": "trusted", "selection": "random", "arrival": "pool"}, ""),
    ],
)
def test_a_drawn_share_is_refused_where_nothing_proves_it(settings, rule):
    broken = QualityChecks(review_share=0.1).rules(settings)
    assert broken.keys() == ({"review_share"} if rule else set())
    assert rule in str(broken.get("review_share", ""))
    assert not QualityChecks(review_share=0.0).rules(settings)
