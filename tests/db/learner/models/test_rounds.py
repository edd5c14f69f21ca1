import pytest
from django.utils import translation

from learner.models import Round
from learner.strategies.catalogue import CHOICES


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.name)
def test_a_round_is_called_as_its_choice_is(choice):
    assert Round(strategy=choice.name).chosen_by == choice.label
    with translation.override("de"):
        assert Round(strategy=choice.name).chosen_by not in ("", choice.label)


def test_what_no_choice_stands_for_is_told_too():
    assert Round(strategy="repeat_votes").chosen_by == "more answers to doubtful questions"
    assert Round(strategy="withdrawn").chosen_by == "withdrawn"
