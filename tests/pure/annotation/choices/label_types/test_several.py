from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.choices.label_types.class_sets import number_of, places_of
from annotation.choices.label_types.several import ChooseSeveral

SETTINGS = {"oracle": "trusted", "arrival": "pool", "data_kind": "text", "classes": list("abcde")}
SOUND = SETTINGS | {"estimator": "label_sets", "selection": "secret_sample", "labels_per_record": 2}
sets = st.frozensets(st.integers(0, 4), max_size=2).map(number_of)


def test_the_answers_are_the_sets_of_so_many_classes():
    for kind in (ChooseSeveral(2, True), ChooseSeveral(2, False)):
        wanted = [number_of(c) for size in range(not kind.none_allowed, 3) for c in combinations(range(5), size)]
        found = [number for number in range(-1, 64) if not kind.refusal(number, 5)]
        assert sorted(found) == sorted(wanted)
        assert len(found) == kind.possible(5)
    assert "at most 2" in ChooseSeveral(2, True).refusal(number_of([0, 1, 2]), 5)
    assert "at least one" in ChooseSeveral(2, False).refusal(0, 5)


@given(st.lists(sets, min_size=1, max_size=7))
def test_each_class_has_its_majority_and_a_record_no_more_than_declared(votes):
    kind = ChooseSeveral(2, True)
    agreement = kind.agreed(votes)
    named = Counter(place for vote in votes for place in places_of(vote))
    majority = {place for place, n in named.items() if 2 * n > len(votes)}
    if agreement is None:
        assert not majority
        assert 2 * votes.count(0) <= len(votes)
        return
    agreed = set(places_of(agreement.choice))
    assert agreed <= majority
    assert len(agreed) == min(2, len(majority))
    assert 1 <= agreement.agreeing <= agreement.votes == len(votes)
    assert (agreement.agreeing == agreement.votes) == (set(votes) == {agreement.choice})


def test_majorities_beyond_the_number_keep_the_most_named_then_the_first():
    votes = [number_of(pair) for pair in ((0, 1), (1, 2), (0, 2))]
    assert places_of(ChooseSeveral(2, True).agreed(votes).choice) == (0, 1)
    assert places_of(ChooseSeveral(3, True).agreed(votes).choice) == (0, 1, 2)


def test_nothing_is_agreed_on_only_where_most_say_so():
    kind = ChooseSeveral(2, True)
    assert kind.agreed([number_of([0]), number_of([1])]) is None
    assert kind.agreed([0, 0, number_of([1])]).choice == 0


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({}, None),
        ({"labels_per_record": 6}, "labels_per_record"),
        ({"classes": [str(n) for n in range(62)], "labels_per_record": 7}, "labels_per_record"),
        ({"classes": [str(n) for n in range(61)], "labels_per_record": 60}, None),
        ({"selection": "top_c"}, "selection"),
        ({"suggestions": "released_model"}, "suggestions"),
        ({"oracle": "crowd"}, "question_kind"),
        ({"arrival": "stream"}, "question_kind"),
    ],
)
def test_what_is_refused(changed, broken):
    assert set(ChooseSeveral.broken_by(SOUND | changed)) == ({broken} if broken else set())
