import pytest

from annotation.choices.plans import QualityChecks


@pytest.mark.parametrize(("oracle", "refused"), [("crowd", True), ("trusted", False)])
def test_a_crowds_answers_stand_where_they_agree(oracle, refused):
    assert bool(QualityChecks(reviewed="all").rules({"oracle": oracle})) == refused
    assert not QualityChecks().rules({"oracle": oracle})


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"oracle": "crowd"}, "except for answers without a majority"),
        ({"oracle": "trusted", "selection": "secret_sample"}, "with secret selection"),
        (
            {"oracle": "trusted", "arrival": "stream", "update_policy": "flsw_hidden"},
            "with secret selection",
        ),
        ({"oracle": "trusted", "arrival": "stream", "update_policy": "flmb"}, "Not for streams"),
        ({"oracle": "trusted", "selection": "random", "arrival": "pool"}, ""),
    ],
)
def test_a_drawn_share_is_refused_where_nothing_proves_it(settings, rule):
    broken = QualityChecks(review_share=0.1).rules(settings)
    assert broken.keys() == ({"review_share"} if rule else set())
    assert rule in str(broken.get("review_share", ""))
    assert not QualityChecks(review_share=0.0).rules(settings)
