"""The parts of the label page that are the same for every question of a project, rendered once.

Rendering them anew would take most of the time of an answer. What differs from click to click has a stand-in, drawn by
every process for itself, so that nothing a person wrote can be taken for one. All that a part shows is in the key it is
kept under.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from annotation import selectors
from annotation.forms import FLAGS, SKIP_REASONS
from annotation.models import Project, QuestionKind

KEYS = "1234567890"
ASSIGNMENT, KEY, TOKEN = (str(uuid4()) for _number in range(3))


@dataclass(frozen=True, slots=True)
class Asked:
    """All that decides how a question of a project is answered and what protects whom it is about."""

    language: str
    answers: tuple[str, ...]
    by_letter: bool
    confirm_answers: bool
    oracle: str
    privacy_unit: str
    gate_kind: str
    gate_floor: int | None
    gate_k: int | None
    has_guess: bool
    earlier: int | None


@dataclass(frozen=True, slots=True)
class Parts:
    """Finished parts of one page."""

    answer: SafeString
    instead: SafeString
    undo: SafeString


def parts_of(assignment: Any, *, token: str, earlier: int | None, last: str | None) -> Parts:
    """Return the parts of the page of an assignment for the person whose form token it is."""
    project: Project = assignment.project
    language = translation.get_language() or settings.LANGUAGE_CODE
    asked = Asked(
        language=language,
        answers=tuple(selectors.answers_of(project)),
        by_letter=project.question_kind == QuestionKind.CONFIRM,
        confirm_answers=project.confirm_answers,
        oracle=project.oracle,
        privacy_unit=project.privacy_unit,
        gate_kind=project.gate_kind,
        gate_floor=project.gate_floor,
        gate_k=project.gate_k,
        has_guess=assignment.query.guess is not None,
        earlier=earlier,
    )
    pk = str(assignment.pk)
    answer = _answer(asked).replace(ASSIGNMENT, pk).replace(KEY, str(uuid4()))
    instead = _instead(language).replace(ASSIGNMENT, pk)
    return Parts(_with_token(answer, token), _with_token(instead, token), undo_of(project.slug, last=last, token=token))


def undo_of(slug: str, *, last: str | None, token: str) -> SafeString:
    """Return the button that takes back what was done last, if anything was."""
    language = translation.get_language() or settings.LANGUAGE_CODE
    return SafeString() if last is None else _with_token(_undo(language, slug, last), token)


def _with_token(part: str, token: str) -> SafeString:
    # Letters, digits and hyphens, made by us, take the places of stand-ins in what a template escaped.
    return mark_safe(part.replace(TOKEN, token))  # noqa: S308


@lru_cache(maxsize=512)
def _answer(asked: Asked) -> str:
    keys = KEYS.ljust(len(asked.answers))
    with translation.override(asked.language):
        choices = [
            (value, keys[value].strip(), _shortcuts(value, by_letter=asked.by_letter), name)
            for value, name in enumerate(asked.answers)
        ]
        context = {"asked": asked, "choices": choices, "assignment_id": UUID(ASSIGNMENT), "key": KEY, "token": TOKEN}
        return render_to_string("annotation/_label_answer.html", context)


def _shortcuts(value: int, *, by_letter: bool) -> str:
    """Return the keys that give an answer, apart by spaces: its number, and the letter of a yes or a no."""
    number = KEYS[value : value + 1]
    return f"{number} {(_('Y'), _('N'))[value].lower()}" if by_letter else number


@lru_cache(maxsize=64)
def _instead(language: str) -> str:
    """Return the forms for skipping, flagging and commenting."""
    context = {"assignment_id": UUID(ASSIGNMENT), "token": TOKEN, "reasons": SKIP_REASONS, "flags": FLAGS}
    with translation.override(language):
        return render_to_string("annotation/_label_instead.html", context)


@lru_cache(maxsize=2048)
def _undo(language: str, slug: str, last: str) -> str:
    with translation.override(language):
        return render_to_string("annotation/_label_undo.html", {"slug": slug, "last_answer": last, "token": TOKEN})
