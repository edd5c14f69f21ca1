"""What several answers agree on."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.consensus import Agreement, majority

answers = st.lists(st.integers(0, 4), min_size=1, max_size=9)


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ([3], Agreement(choice=3, votes=1, agreeing=1)),
        ([0, 0, 1], Agreement(choice=0, votes=3, agreeing=2)),
        ([2, 1, 2, 2], Agreement(choice=2, votes=4, agreeing=3)),
        ([0, 1], None),
        ([0, 1, 2], None),
        ([0, 0, 1, 1], None),
        ([0, 0, 1, 2], None),
        ([0, 0, 1, 2, 3], None),
    ],
)
def test_more_than_half_must_agree(choices, expected):
    assert majority(choices) == expected


def test_no_answer_is_no_question():
    with pytest.raises(ValueError, match="at least one answer"):
        majority([])


@given(choices=answers, data=st.data())
def test_the_order_of_the_answers_does_not_matter(choices, data):
    assert majority(data.draw(st.permutations(choices))) == majority(choices)


@given(choices=answers)
def test_it_agrees_with_counting(choices):
    winners = [choice for choice, count in Counter(choices).items() if count > len(choices) / 2]
    found = majority(choices)
    assert ([] if found is None else [found.choice]) == winners
