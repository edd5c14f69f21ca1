from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.choices.consensus import Agreement, majority, median, median_by_coin, plurality
from annotation.choices.randomizers import RandomizedConsensus
from privacy.mechanisms.randomness import SimulationRandom

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


def test_most_answers_settle_and_a_coin_settles_a_tie():
    """Seeded; a fair coin lies outside once in two million."""
    rng = SimulationRandom(7)
    assert plurality([2, 0, 2], rng=rng) == 2
    tied = [plurality([3, 1, 1, 3], rng=rng) for _ in range(400)]
    assert set(tied) == {1, 3}
    assert 150 < tied.count(1) < 250
    with pytest.raises(ValueError, match="at least one answer"):
        plurality([], rng=rng)


@pytest.mark.parametrize(
    ("votes", "found"),
    [([3], 3), ([0, 4, 1], 1), ([0, 2, 4], 2), ([1, 1, 4, 4], None), ([0, 2, 2, 4], 2), ([0, 1], None), ([2, 2], 2)],
)
def test_the_median_has_a_middle_or_none(votes, found):
    agreement = median(votes)
    assert (agreement and agreement.choice) == found
    if agreement is not None:
        assert agreement.agreeing == votes.count(found)


def test_a_coin_takes_either_middle_and_no_other():
    rng = SimulationRandom(1)
    drawn = [median_by_coin([0, 1, 3, 4], rng=rng) for _ in range(200)]
    assert set(drawn) == {1, 3}
    assert 60 < drawn.count(1) < 140
    with pytest.raises(ValueError, match="none"):
        median([])


@given(epsilon=st.floats(0.01, 20), randomizations=st.integers(1, 5), n_classes=st.integers(2, 100))
def test_all_responses_together_cost_what_is_declared(epsilon, randomizations, n_classes):
    choice = RandomizedConsensus(answers_epsilon=epsilon, randomizations=randomizations)
    event = choice.event(n_classes=n_classes)
    assert event.randomizations == randomizations
    assert event.cost().epsilon <= epsilon
    assert event.cost().epsilon == pytest.approx(epsilon, rel=1e-6)
