"""Whose change the account of a crowd's answers hides: one answer, one annotator, or nobody's."""

from collections.abc import Mapping
from typing import Any

from annotation.choices.label_randomizers import RandomizedConsensus
from annotation.choices.open_answers import AnswersNotSecret
from privacy.choices import Kind

ANSWER = "answer"
ANNOTATOR = "annotator"


def answers_unit(settings: Mapping[str, Any]) -> str | None:
    """Return the unit of the account that a crowd's answers have under settings, None where they are no secret."""
    chosen = settings.get(Kind.RANDOMIZER.key)
    if chosen == AnswersNotSecret.name:
        return None
    if chosen == RandomizedConsensus.name:
        return str(settings.get("answers_unit") or ANSWER)
    return ANSWER


def randomizes(settings: Mapping[str, Any]) -> bool:
    """Say whether everybody outside reads responses drawn from what answers agree on."""
    return bool(settings.get(Kind.RANDOMIZER.key) == RandomizedConsensus.name)
