from itertools import product

import numpy as np
import pytest
from django.template.loader import get_template

from annotation.choices.label_types.base import NamesSeveral, Settles, refusal_of
from annotation.choices.label_types.catalogue import LABEL_TYPES, label_type_of
from annotation.choices.label_types.choose import ChooseOne
from annotation.choices.label_types.confirm import NO, YES
from annotation.choices.label_types.spans import MarkSpans
from annotation.questions.views.label_parts import keys_of_type, keys_page
from privacy.mechanisms.randomness import SimulationRandom

CLASSES = ["a", "b", "c"]
# Sets of spans are stored, so their numbers follow from no rule.
COMPUTED = [each for each in LABEL_TYPES if each is not MarkSpans]


def answers_of(kind):
    found = [number for number in range(-1, 2 ** len(CLASSES) + 1) if not refusal_of(kind, number, len(CLASSES))]
    assert len(found) == kind.possible(len(CLASSES))
    return found


@pytest.mark.parametrize("declared", COMPUTED)
def test_each_type(declared):
    kind = label_type_of(declared.name, {})
    assert get_template(kind.widget)
    assert kind.event() is None
    answers = answers_of(kind)
    names = [kind.exported(choice, CLASSES, 1) for choice in answers]
    assert all(isinstance(each, list) == isinstance(kind, NamesSeveral) for each in names)
    assert len({repr(each) for each in names}) == len(answers)
    if isinstance(kind, NamesSeveral):
        assert all(kind.stored(kind.places(choice)) == choice for choice in answers)
    assert len(keys_of_type(kind, CLASSES)) == len(CLASSES)
    assert get_template(keys_page(kind))
    taught, targets = kind.targets(np.array(answers), None, n_classes=len(CLASSES))
    assert taught.all()
    assert len(targets) == len(answers)
    for choice in answers:
        alone = kind.agreed([choice])
        assert (alone.choice, alone.votes, alone.agreeing) == (choice, 1, 1)
    assert kind.coefficient.of([[0], [1]]) is None
    assert kind.coefficient.of([[0, 0], [1, 1]]) == 1.0


@pytest.mark.parametrize("declared", COMPUTED)
def test_what_is_agreed_on_is_an_answer_and_the_order_of_votes_does_not_matter(declared):
    kind = label_type_of(declared.name, {})
    for votes in product(answers_of(kind)[:4], repeat=3):
        agreement = kind.agreed(votes)
        assert agreement == kind.agreed(votes[::-1])
        if agreement is not None:
            assert not refusal_of(kind, agreement.choice, len(CLASSES))
            assert votes.count(agreement.choice) <= agreement.agreeing <= agreement.votes == 3
            assert agreement.agreeing >= 1


def test_projects_store_the_names_that_are_declared():
    assert [each.name for each in LABEL_TYPES] == ["choose", "several", "confirm", "rating", "spans"]


def test_an_answer_to_a_guess_names_the_guessed_class_or_its_absence():
    confirm = label_type_of("confirm", {})
    assert [confirm.exported(choice, CLASSES, 2) for choice in (YES, NO)] == ["c", "not c"]


def test_of_two_classes_either_answer_to_a_guess_teaches_one():
    said, guesses = np.array([YES, NO, YES]), np.array([0, 1, 1])
    named, classes = label_type_of("confirm", {}).targets(said, guesses, n_classes=2)
    assert (named.tolist(), classes.tolist()) == ([True, True, True], [0, 0, 1])


def test_of_more_classes_a_no_teaches_none():
    said, guesses = np.array([YES, NO, YES]), np.array([0, 1, 2])
    named, classes = label_type_of("confirm", {}).targets(said, guesses, n_classes=3)
    assert (named.tolist(), classes.tolist()) == ([True, False, True], [0, 2])


def test_a_set_teaches_each_of_its_classes():
    taught, members = label_type_of("several", {}).targets(np.array([0b101, 0]), None, n_classes=3)
    assert (taught.tolist(), members.tolist()) == ([True, True], [[True, False, True], [False, False, False]])


def test_nobody_says_a_set_by_chance():
    settings = {"classes": CLASSES, "label_randomizer": "randomized_consensus"}
    assert "label_randomizer" in label_type_of("several", {}).rules(settings)
    assert not isinstance(label_type_of("several", {}), Settles)
    for name in ("choose", "rating"):
        assert "label_randomizer" not in label_type_of(name, {}).rules(settings)


def test_a_coin_settles_what_answers_leave_open_and_nothing_else():
    rng = SimulationRandom(3)
    for declared in LABEL_TYPES:
        kind = label_type_of(declared.name, {})
        if not isinstance(kind, Settles):
            continue
        for votes in product(range(min(4, kind.possible(len(CLASSES)))), repeat=4):
            agreement = kind.agreed(votes)
            settled = {kind.settled(votes, rng=rng) for _ in range(20)}
            assert settled <= set(votes)
            if agreement is not None:
                assert settled == {agreement.choice}


def test_a_class_named_by_a_digit_has_it_as_its_key():
    assert keys_of_type(ChooseOne(), ["0", "7", "1"]) == ["0", "7", "1"]
    assert keys_of_type(ChooseOne(), ["0", "seven"]) == ["1", "2"]
