"""What every type of label must hold."""

from itertools import product

import pytest
from django.template.loader import get_template

from annotation.choices.label_types.catalogue import LABEL_TYPES, label_type_named
from annotation.models import QuestionKind
from privacy.mechanisms.randomness import SimulationRandom

CLASSES = ["a", "b", "c"]


def answers_of(kind):
    """Return every number that is an answer."""
    found = [number for number in range(-1, 2 ** len(CLASSES) + 1) if not kind.refusal(number, len(CLASSES))]
    assert len(found) == kind.possible(len(CLASSES))
    return found


@pytest.mark.parametrize("declared", LABEL_TYPES)
def test_each_type(declared):
    kind = label_type_named(declared.name)
    assert get_template(kind.widget)
    assert kind.event() is None
    answers = answers_of(kind)
    cells = [kind.cell(choice, CLASSES, 1) for choice in answers]
    assert len(set(cells)) == len(answers)
    assert all(cells)
    for choice in answers:
        alone = kind.agreed([choice])
        assert (alone.choice, alone.votes, alone.agreeing) == (choice, 1, 1)
    assert kind.alpha({1: [0], 2: [1]}) is None
    assert kind.alpha({1: [0, 0], 2: [1, 1]}) == 1.0


@pytest.mark.parametrize("declared", LABEL_TYPES)
def test_what_is_agreed_on_is_an_answer_and_the_order_of_votes_does_not_matter(declared):
    kind = label_type_named(declared.name)
    for votes in product(answers_of(kind)[:4], repeat=3):
        agreement = kind.agreed(votes)
        assert agreement == kind.agreed(votes[::-1])
        if agreement is not None:
            assert not kind.refusal(agreement.choice, len(CLASSES))
            assert votes.count(agreement.choice) <= agreement.agreeing <= agreement.votes == 3
            assert agreement.agreeing >= 1


def test_projects_store_the_names_that_are_declared():
    assert {each.name for each in LABEL_TYPES} == set(QuestionKind.values)


def test_an_answer_to_a_guess_names_the_guessed_class_or_its_absence():
    confirm = label_type_named("confirm")
    assert [confirm.cell(choice, CLASSES, 2) for choice in (0, 1)] == ["c", "not c"]


def test_a_coin_settles_what_answers_leave_open_and_nothing_else():
    rng = SimulationRandom(3)
    for declared in LABEL_TYPES:
        kind = label_type_named(declared.name)
        if kind.takes_several:
            continue
        for votes in product(range(min(4, kind.possible(len(CLASSES)))), repeat=4):
            agreement = kind.agreed(votes)
            settled = {kind.settled(votes, rng=rng) for _ in range(20)}
            assert settled <= set(votes)
            if agreement is not None:
                assert settled == {agreement.choice}
