"""REST routes of questions: claiming, answering, giving back, and every answer as a file."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import Field, Router, Schema, Status

from annotation import selectors
from annotation.models import Assignment, Role
from annotation.people.identity import person_of
from annotation.people.services.tokens import Scope
from annotation.questions import answers
from annotation.questions.downloads import labels_response
from annotation.questions.services import labels, queue
from annotation.questions.services.label_export import MEDIA_TYPES, ExportFormat
from annotation.rest.base import project_for, require_scope
from annotation.rest.idempotency import idempotent
from annotation.rest.responses import responses, written

router = Router()


LABEL_MEDIA_TYPES = list(MEDIA_TYPES.values())


class AssignmentOut(Schema):
    """A question leased to the caller.

    Where `guess` names a class, the question is whether it is right, and `classes` are the two answers to that.
    """

    id: UUID
    leased_until: datetime
    question: str
    classes: list[str]
    guess: str | None
    suggestion: str | None = Field(None, description="What the newest released model takes it for, where it is shown.")
    suggestion_percent: int | None = Field(None, description="How sure the model is of that.")
    text: str | None
    fields: dict[str, Any] | None
    image_url: str | None


class LabelIn(Schema):
    """An answer: the position of the class in the project's list."""

    choice: int = Field(ge=0)


class SkipIn(Schema):
    """Why a question is not answered."""

    reason: str = Field("", max_length=200)


class LabelOut(Schema):
    """A stored answer, under the id of its assignment.

    Numbers of rows are given out over all projects: whoever answers in one could count by their gaps, second by second,
    what is answered in another that hides it.
    """

    id: UUID = Field(alias="assignment_id")
    choice: int
    created_at: datetime


@router.post(
    "projects/{slug:slug}/assignments",
    response={200: AssignmentOut, 204: None},
    summary="Claim the next question; 204 when there is none",
    openapi_extra=written(200, 204, problems=(409,)),
)
@idempotent
def claim_assignment(request: HttpRequest, slug: str) -> Any:
    require_scope(request, Scope.LABELS_WRITE)
    project = project_for(request, slug, Role.ANNOTATOR)
    assignment = queue.claim_next(project=project, user=person_of(request))
    if assignment is None:
        return Status(204, None)
    shown = selectors.question_of(assignment)
    suggestion = selectors.suggestion_of(assignment)
    return AssignmentOut(
        id=assignment.id,
        leased_until=assignment.leased_until,
        question=project.question,
        classes=answers.names_of(project),
        guess=selectors.guess_of(assignment),
        suggestion=None if suggestion is None else suggestion.name,
        suggestion_percent=None if suggestion is None else suggestion.percent,
        text=shown.text,
        fields=dict(shown.fields) if shown.fields is not None else None,
        image_url=shown.image_url,
    )


def _own_assignment(request: HttpRequest, assignment_id: UUID) -> Assignment:
    return get_object_or_404(selectors.assignments_of(request.user), pk=assignment_id)


@router.post(
    "assignments/{assignment_id}/label",
    response=LabelOut,
    summary="Answer a question",
    openapi_extra=written(200, problems=(409,)),
)
@idempotent
def label_assignment(request: HttpRequest, assignment_id: UUID, body: LabelIn) -> Any:
    require_scope(request, Scope.LABELS_WRITE)
    return labels.submit_label(assignment=_own_assignment(request, assignment_id), choice=body.choice)


@router.post(
    "assignments/{assignment_id}/skip",
    response={204: None},
    summary="Give a question back",
    openapi_extra=written(204, problems=(409,)),
)
@idempotent
def skip_assignment(request: HttpRequest, assignment_id: UUID, body: SkipIn) -> Any:
    require_scope(request, Scope.LABELS_WRITE)
    labels.skip_assignment(assignment=_own_assignment(request, assignment_id), reason=body.reason)
    return Status(204, None)


@router.get(
    "projects/{slug:slug}/labels",
    summary="Every answer as a file, streamed",
    openapi_extra=responses(
        responses={
            200: {
                "description": "The file",
                "headers": {"Content-Disposition": {"required": True, "schema": {"type": "string"}}},
                "content": {name: {} for name in LABEL_MEDIA_TYPES},
            }
        }
    ),
)
def export_labels(
    request: HttpRequest,
    slug: str,
    format: ExportFormat = ExportFormat.JSON_LINES,  # noqa: A002
    history: bool = False,
) -> HttpResponseBase:
    require_scope(request, Scope.LABELS_READ)
    return labels_response(project_for(request, slug, Role.MANAGER), format, history=history)
