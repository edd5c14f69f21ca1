"""Selectors of the possible answers of a project and their names."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db.models import F, Q
from django.utils.translation import gettext

from annotation.choices.consensus import Agreement
from annotation.choices.label_types.base import LabelType, NamesSeveral, OwnWords, places_of_answer, refusal_of
from annotation.choices.label_types.catalogue import label_type_of
from annotation.choices.merged_classes import counts_as
from annotation.errors import InvalidChoice
from annotation.models import Project, ReportKind
from annotation.models.configurations import MOST_KNOWN, settings_in
from annotation.wording import class_name


def label_type(project: Project) -> LabelType:
    return _label_type(project.question_kind, project.configuration_id)


@lru_cache(maxsize=MOST_KNOWN)
def _label_type(name: str, configuration_id: UUID) -> LabelType:
    # A configuration never changes, and no parameter of a type of label is a column of the project.
    return label_type_of(name, settings_in(configuration_id))


def answer_names(project: Project) -> list[str]:
    kind = label_type(project)
    return [gettext(word) for word in kind.words] if isinstance(kind, OwnWords) else list(project.classes)


def names_several(project: Project) -> bool:
    return isinstance(label_type(project), NamesSeveral)


def answer_name(project: Project, choice: int) -> str:
    names = answer_names(project)
    return ", ".join(str(names[place]) for place in places_in(project, choice)) or gettext("none of them")


def counting_places(project: Project) -> tuple[int, ...]:
    """Return of each class the position of the one it counts as; empty where no class was merged."""
    return counts_as(project.classes, project.merged_classes)


def counted(project: Project, choice: int) -> int:
    places = counting_places(project)
    return places[choice] if places else choice


def counting_as(project: Project, choice: int) -> list[int]:
    return [choice, *(place for place, into in enumerate(counting_places(project)) if into == choice != place)]


def counts_equal(project: Project, answer: str, expected: str) -> Q:
    same = Q(**{answer: F(expected)})
    for into in {one for place, one in enumerate(counting_places(project)) if one != place}:
        group = counting_as(project, into)
        same |= Q(**{f"{answer}__in": group, f"{expected}__in": group})
    return same


def offered_answers(project: Project) -> list[tuple[int, str]]:
    places = counting_places(project)
    return [(n, class_name(name)) for n, name in enumerate(answer_names(project)) if not places or places[n] == n]


def agreed_on(project: Project, votes: Sequence[int]) -> Agreement | None:
    """Return what answers agree on after merges, stored as most of those who agree said it; None without a majority."""
    agreement = label_type(project).agreed([counted(project, vote) for vote in votes])
    if agreement is None or not counting_places(project):
        return agreement
    said = Counter(sorted(vote for vote in votes if counted(project, vote) == agreement.choice))
    return replace(agreement, choice=said.most_common(1)[0][0])


def possible_answers(project: Project) -> int:
    return label_type(project).possible(len(project.classes))


def refuse_no_answer(project: Project, choice: int) -> None:
    if refusal := refusal_of(label_type(project), choice, len(project.classes)):
        raise InvalidChoice(refusal)


def stored_choice(project: Project, choice: int | None, choices: Sequence[int] | None) -> int:
    """Return a program's answer as one number: a position, or a set of positions where several are allowed."""
    kind = label_type(project)
    if not isinstance(kind, NamesSeveral):
        if choice is None or choices is not None:
            raise InvalidChoice("Answer with `choice`, the position of one class.")
        return choice
    if choice is not None or choices is None:
        raise InvalidChoice("Answer with `choices`, the positions of all classes that are named.")
    if len(set(choices)) != len(choices):
        raise InvalidChoice("A class is named once.")
    try:
        return kind.stored(choices)
    except ValueError:
        raise InvalidChoice("So many classes are not stored together.") from None


def places_in(project: Project, choice: int) -> tuple[int, ...]:
    return places_of_answer(label_type(project), choice)


def last_done(desk: Any) -> str | None:
    """Name what the person could take back first; None where nothing is."""
    if desk.skipped_at and not (desk.answered_at and desk.answered_at > desk.skipped_at):
        flagged = desk.last_skip in (ReportKind.BROKEN, ReportKind.SENSITIVE)
        return gettext("flagged") if flagged else gettext("skipped")
    return None if desk.last_choice is None else answer_name(desk, desk.last_choice)


def counted_answers(project: Project, choices: Sequence[int]) -> list[tuple[str, int]]:
    numbers = {choice: choices.count(choice) for choice in sorted(set(choices))}
    return [(answer_name(project, choice), n) for choice, n in sorted(numbers.items(), key=lambda each: -each[1])]
