"""Parts of the label page that are the same for all questions of a project, rendered once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from annotation.choices.classes import NO_LOOK, Look, grouped, keys_of, looks_of
from annotation.choices.gates import gate_choice, unit_of
from annotation.choices.label_types.base import DIGITS, LAST_STEP, LabelType, NamesSeveral, OwnKeys, OwnWords, Teaching
from annotation.models import Oracle, Project
from annotation.questions.class_list import is_many, listed_classes
from annotation.questions.forms import FLAGS, SKIP_REASONS
from annotation.questions.selectors import (
    answer_names,
    counting_places,
    label_type,
    marks_spans,
    places_in,
    spans_of,
    suggestion_of,
)
from dpal.spans.text import MAX_TOKENS, tokens, written

# Takes what the model suggests; with a list of classes, where letters find one, together with Shift.
ACCEPT = "a"
# Stand-ins for what differs from click to click, drawn by each process so that no text of a person is taken for one.
ASSIGNMENT, KEY, TOKEN, MARKS, PROPOSED = (str(uuid4()) for _number in range(5))


@dataclass(frozen=True, slots=True)
class Asked:
    language: str
    kind: LabelType
    answers: tuple[str, ...]
    # Of each class the one it counts as; empty where none was merged.
    places: tuple[int, ...]
    # Group, colour and own key of each answer; none where a yes or no, or a step of a scale, is given.
    looks: tuple[Look, ...]
    confirm_answers: bool
    oracle: str
    # What is true of a text that passed the gate; empty where there is none.
    told: str
    has_guess: bool
    suggested: int | None
    earlier: tuple[int, ...] | None
    # For who has no scripts; with them a page has the list once, and each question comes without it.
    with_list: bool

    @property
    def is_many(self) -> bool:
        return is_typed(self.kind, self.answers)


@dataclass(frozen=True, slots=True)
class Parts:
    answer: SafeString
    instead: SafeString
    undo: SafeString
    is_many: bool


@dataclass(frozen=True, slots=True)
class Word:
    """A word that may be marked, with the signs before it."""

    before: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Words:
    """A text as it is marked: its words up to the cut, and the rest."""

    words: tuple[Word, ...]
    rest: str
    is_cut: bool


def words_of(project: Project, text: str | None) -> Words | None:
    if text is None or not marks_spans(project):
        return None
    places, done, words = tokens(text), 0, []
    for start, end in places[:MAX_TOKENS]:
        words.append(Word(text[done:start], text[start:end], start, end))
        done = end
    return Words(tuple(words), text[done:], len(places) > MAX_TOKENS)


def is_typed(kind: LabelType, names: Sequence[str]) -> bool:
    """Say whether a class is found by typing: where many are listed, but not as types of spans."""
    return kind.lists_classes and kind.teaches is not Teaching.SPANS and is_many(names)


def parts_of(assignment: Any, *, token: str, earlier: int | None, last: str | None, with_list: bool = True) -> Parts:
    project: Project = assignment.project
    language = translation.get_language() or settings.LANGUAGE_CODE
    suggestion = suggestion_of(assignment)
    kind = label_type(project)
    asked = Asked(
        language=language,
        kind=kind,
        answers=tuple(answer_names(project)),
        places=counting_places(project),
        looks=looks_of(project.settings, project.classes) if kind.lists_classes else (),
        confirm_answers=project.confirm_answers,
        oracle=project.oracle,
        told=_told(project),
        has_guess=assignment.query.guess is not None,
        suggested=None if suggestion is None or marks_spans(project) else suggestion.choice,
        earlier=None if earlier is None or marks_spans(project) else places_in(project, earlier),
        with_list=with_list,
    )
    pk = str(assignment.pk)
    answer = _answer(asked).replace(ASSIGNMENT, pk).replace(KEY, str(uuid4()))
    if marks_spans(project):
        proposed = "" if suggestion is None else marks_in(project, suggestion.choice)
        answer = answer.replace(MARKS, escape(marks_in(project, earlier))).replace(PROPOSED, escape(proposed))
    instead = _instead(language).replace(ASSIGNMENT, pk)
    return Parts(
        _with_token(answer, token),
        _with_token(instead, token),
        undo_of(project.slug, last=last, token=token),
        asked.is_many,
    )


def marks_in(project: Project, choice: int | None) -> str:
    return written(() if choice is None or not marks_spans(project) else spans_of(project, [choice])[choice])


def choices_of(project: Project) -> list[tuple[int, str, str, str, str]]:
    """Return position, key, shortcut, name and colour of each class."""
    looks = looks_of(project.settings, project.classes)
    return [
        (place, key, key, str(name), look.colour)
        for place, (key, name, look) in enumerate(zip(keys_of(looks), project.classes, looks, strict=True))
    ]


def _told(project: Project) -> str:
    if project.oracle != Oracle.CROWD:
        return ""
    return gate_choice(project.settings).told(unit_of(project.settings))


def undo_of(slug: str, *, last: str | None, token: str) -> SafeString:
    language = translation.get_language() or settings.LANGUAGE_CODE
    return SafeString() if last is None else _with_token(_undo(language, slug, last), token)


def _with_token(part: str, token: str) -> SafeString:
    # Letters, digits and hyphens, made by us, take the places of stand-ins in what a template escaped.
    return mark_safe(part.replace(TOKEN, token))  # noqa: S308


@lru_cache(maxsize=512)
def _answer(asked: Asked) -> str:
    keys = _keys(asked)
    with translation.override(asked.language):
        choices = [
            (value, key, _shortcuts(value, key, asked), name, look.colour)
            for value, (key, name, look) in enumerate(zip(keys, asked.answers, _looks(asked), strict=True))
        ]
        offered = [choice for choice in choices if not asked.places or asked.places[choice[0]] == choice[0]]
        groups = [
            (heading, found)
            for heading, places in grouped(_looks(asked))
            if (found := [choices[place] for place in places if choices[place] in offered])
        ]
        context = {
            "asked": asked,
            "choices": offered,
            "groups": groups,
            "is_grouped": len(groups) > 1 or bool(groups[0][0]),
            "classes_mark": mark_of(asked.answers, asked.looks, asked.places),
            "assignment_id": UUID(ASSIGNMENT),
            "key": KEY,
            "token": TOKEN,
            "marks": MARKS,
            "proposed": PROPOSED,
        }
        return render_to_string("annotation/questions/_label_answer.html", context)


def list_of(project: Project, *, typed: bool) -> dict[str, Any]:
    looks = looks_of(project.settings, project.classes)
    found = listed_classes(tuple(project.classes), tuple(project.settings.get("class_descriptions") or ()), looks)
    typed = typed and is_typed(label_type(project), project.classes)
    classes = found if typed else [replace(one, code="") for one in found]
    if not typed and not any(one.description_lines for one in classes):
        return {}
    into = counting_places(project)
    members = [
        (heading, [classes[n] for n in places if not into or into[n] == n]) for heading, places in grouped(looks)
    ]
    groups = [(heading, listed) for heading, listed in members if listed]
    return {"class_list": groups, "classes_mark": mark_of(project.classes, looks, into)}


def mark_of(answers: Sequence[str], looks: Sequence[Look], places: Sequence[int]) -> str:
    return sha256(repr((list(answers), list(looks), list(places))).encode()).hexdigest()[:12]


def _looks(asked: Asked) -> Sequence[Look]:
    return asked.looks or [NO_LOOK] * len(asked.answers)


def _keys(asked: Asked) -> list[str]:
    return keys_of(asked.looks) if asked.looks else keys_of_type(asked.kind, asked.answers)


def keys_of_type(kind: LabelType, names: Sequence[str]) -> list[str]:
    """Return the key of each answer: a digit is its own, any other answer has the digit of its place."""
    if isinstance(kind, OwnKeys):
        return kind.keys(names)
    return list(names) if all(name in [*DIGITS] for name in names) else list((DIGITS + LAST_STEP)[: len(names)])


def keys_page(kind: LabelType) -> str:
    if isinstance(kind, NamesSeveral):
        return "annotation/choices/_keys_several.html"
    if kind.teaches is Teaching.SPANS:
        return "annotation/choices/_keys_spans.html"
    return f"annotation/choices/_keys_{'confirm' if isinstance(kind, OwnWords) else 'choose'}.html"


def _shortcuts(value: int, key: str, asked: Asked) -> str:
    letters = asked.kind.letters[value : value + 1] if isinstance(asked.kind, OwnWords) else ()
    keys = [key, *(_(letter).lower() for letter in letters)]
    if value == asked.suggested:
        keys.append(ACCEPT)
    return " ".join(key for key in keys if key)


@lru_cache(maxsize=64)
def _instead(language: str) -> str:
    context = {"assignment_id": UUID(ASSIGNMENT), "token": TOKEN, "reasons": SKIP_REASONS, "flags": FLAGS}
    with translation.override(language):
        return render_to_string("annotation/questions/_label_instead.html", context)


@lru_cache(maxsize=2048)
def _undo(language: str, slug: str, last: str) -> str:
    with translation.override(language):
        return render_to_string(
            "annotation/questions/_label_undo.html", {"slug": slug, "last_answer": last, "token": TOKEN}
        )
