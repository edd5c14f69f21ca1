"""What a question of a project can be answered, and what an answer is called on pages."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext

from annotation.choices.label_types.base import LabelType
from annotation.choices.label_types.catalogue import label_type_named
from annotation.errors import InvalidChoice
from annotation.models import Project, QuestionKind, ReportKind
from privacy.wording import say


def label_type(project: Project) -> LabelType:
    """Return what the project's annotators are asked."""
    return label_type_named(project.question_kind)


def names_of(project: Project) -> list[str]:
    """Return the names among which an answer is given, in the order in which they are shown."""
    if project.question_kind == QuestionKind.CONFIRM:
        return [gettext("Yes, it is right"), gettext("No, it is wrong")]
    return list(project.classes)


def answer_name(project: Project, choice: int) -> str:
    """Return what a stored answer is called."""
    return names_of(project)[choice]


def possible_answers(project: Project) -> int:
    """Return how many answers there are."""
    return label_type(project).possible(len(project.classes))


def refuse_no_answer(project: Project, choice: int) -> None:
    """Refuse what is no answer to a question of the project."""
    possible = possible_answers(project)
    if not 0 <= choice < possible:
        raise InvalidChoice(say("There are {possible} answers to choose from.", possible=possible))


def last_done(desk: Any) -> str | None:
    """Name what the person at a desk could take back first: an answer, a skip or a flag; None where nothing is."""
    if desk.skipped_at and not (desk.answered_at and desk.answered_at > desk.skipped_at):
        flagged = desk.last_skip in (ReportKind.BROKEN, ReportKind.SENSITIVE)
        return gettext("flagged") if flagged else gettext("skipped")
    return None if desk.last_choice is None else answer_name(desk, desk.last_choice)


def counted(project: Project, choices: Sequence[int]) -> list[tuple[str, int]]:
    """Return answers with how many people gave each, the most frequent first."""
    numbers = {choice: choices.count(choice) for choice in sorted(set(choices))}
    return [(answer_name(project, choice), n) for choice, n in sorted(numbers.items(), key=lambda each: -each[1])]
