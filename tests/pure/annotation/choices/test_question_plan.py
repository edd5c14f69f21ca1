import pytest

from annotation.choices.question_plan import QuestionPlan
from privacy.choices import BrokenRules


@pytest.mark.parametrize(
    ("plan", "oracle", "words"),
    [
        (QuestionPlan(overlap=2, overlap_limit=3), "trusted", ""),
        (QuestionPlan(overlap=2, overlap_limit=2), "trusted", ""),
        (QuestionPlan(overlap=3, overlap_limit=2), "trusted", "At least as many"),
        (QuestionPlan(overlap=2, overlap_limit=3), "crowd", "would know that the others disagreed"),
        (QuestionPlan(overlap=9), "crowd", ""),
    ],
)
def test_one_more_is_asked_where_nobody_learns_of_it(plan, oracle, words):
    found = plan.rules({"oracle": oracle})
    assert words in found.get("overlap_limit", "")
    assert bool(found) == bool(words)


@pytest.mark.parametrize(
    "numbers",
    [
        {"round_size": 0},
        {"overlap": 0},
        {"overlap": 26},
        {"lease_seconds": 29},
        {"skips_to_set_aside": 0},
        {"overlap_limit": 0},
        {"confirm_answers": 1},
    ],
)
def test_numbers_outside_their_range_are_refused(numbers):
    with pytest.raises(BrokenRules) as refused:
        QuestionPlan(**numbers)
    assert refused.value.broken.keys() == numbers.keys()


def test_it_costs_nothing_and_may_change():
    assert QuestionPlan().event() is None
    assert not QuestionPlan.stays
