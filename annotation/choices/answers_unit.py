"""Whose change the account of a crowd's answers hides: one answer, one annotator, or nobody's."""

from collections.abc import Mapping
from typing import Any

from annotation.choices.catalogue import chosen_of
from annotation.choices.randomizer_base import ANSWER, RandomizerChoice
from privacy.choices import Kind


def chosen_randomizer(settings: Mapping[str, Any]) -> type[RandomizerChoice] | None:
    """Return how answers leave the trusted side under settings, None where every training is charged for them."""
    choice = chosen_of(Kind.RANDOMIZER, settings)
    # The catalogue takes no other.
    assert choice is None or issubclass(choice, RandomizerChoice)
    return choice


def answers_unit(settings: Mapping[str, Any]) -> str | None:
    """Return the unit of the account that a crowd's answers have under settings, None where they are no secret."""
    choice = chosen_randomizer(settings)
    return ANSWER if choice is None else choice.unit_of(settings)


def randomizes(settings: Mapping[str, Any]) -> bool:
    """Say whether everybody outside reads responses drawn from what answers agree on."""
    choice = chosen_randomizer(settings)
    return choice is not None and not choice.open_answers
