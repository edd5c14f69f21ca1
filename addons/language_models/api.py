"""REST routes of drafts of example texts."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Schema

from addons.language_models import drafting
from addons.language_models.drafts import MOST_EXAMPLES
from addons.language_models.models import WordsDraft
from annotation.models import Role
from annotation.people.identity import person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, project_for
from annotation.work.services.tokens import Scope

router = RoomRouter()


class WordsDraftIn(Schema):
    """The endpoint of a language model, and how many examples of each class; guidelines must quote no record."""

    endpoint: str = Field(max_length=40)
    examples: int = Field(10, ge=1, le=MOST_EXAMPLES)
    guidelines: bool = False


class WordsDraftOut(Answer, reads=Reads.MANAGED):
    """A draft; `state` is `waiting`, `written` or `failed`, `lines` are in the form of `class_descriptions`."""

    draft: UUID
    state: str
    model: str
    lines: list[str]
    fault: str
    created_at: datetime


@router.write(
    "projects/{slug:slug}/words-drafts",
    response={202: WordsDraftOut},
    summary="Let a language model draft example texts of each class; it is shown public words alone",
)
def draft_words(request: HttpRequest, slug: str, body: WordsDraftIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    draft = drafting.start_draft(
        owner=person_of(request),
        endpoint=body.endpoint,
        classes=[str(name) for name in project.classes],
        question=project.question,
        guidelines=project.guidelines if body.guidelines else "",
        examples=body.examples,
        project=project,
    )
    return _draft(draft)


@router.get(
    "projects/{slug:slug}/words-drafts/{words_id}",
    response=WordsDraftOut,
    summary="A draft of example texts, to be edited and stored with the settings",
)
def get_words_draft(request: HttpRequest, slug: str, words_id: UUID) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    return _draft(get_object_or_404(WordsDraft, pk=words_id, project=project))


def _draft(draft: WordsDraft) -> dict[str, Any]:
    state = "waiting" if draft.is_waiting else "failed" if draft.fault or draft.is_overdue else "written"
    return {
        "draft": draft.pk,
        "state": state,
        "model": draft.model,
        "lines": draft.lines,
        "fault": draft.fault,
        "created_at": draft.created_at,
    }
