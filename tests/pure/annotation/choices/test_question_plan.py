import pytest

from annotation.choices.plans import QuestionPlan


@pytest.mark.parametrize(
    ("plan", "oracle", "words"),
    [
        (QuestionPlan(overlap=2, overlap_limit=3), "trusted", ""),
        (QuestionPlan(overlap=2, overlap_limit=2), "trusted", ""),
        (QuestionPlan(overlap=3, overlap_limit=2), "trusted", "At least the number of people"),
        (QuestionPlan(overlap=2, overlap_limit=3), "crowd", "would learn that answers differ"),
        (QuestionPlan(overlap=9), "crowd", ""),
    ],
)
def test_one_more_is_asked_where_nobody_learns_of_it(plan, oracle, words):
    found = plan.rules({"oracle": oracle})
    assert words in found.get("overlap_limit", "")
    assert bool(found) == bool(words)
