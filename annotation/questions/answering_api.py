"""REST routes of what annotators do beside answering: taking back, reporting, and changing an answer of their own."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Field, Query, Schema, Status

from annotation.answers import selectors as answers
from annotation.models import ReportKind, Role
from annotation.people.identity import person_of
from annotation.questions import own_answers
from annotation.questions.api import AssignmentOut, LabelIn, LabelOut, assignment_out, label_out
from annotation.questions.services import correcting, queue, undoing
from annotation.reports.services import reporting
from annotation.work.rest import RoomRouter, own_assignment, project_for
from annotation.work.services.tokens import Scope

router = RoomRouter()


class FlagIn(Schema):
    """What is wrong with a question, and more if somebody wants to say it."""

    kind: Literal["broken", "sensitive"] = Field(
        description="Broken: it cannot be read or shown. Sensitive: nobody should see it."
    )
    comment: str = Field("", max_length=reporting.MAX_COMMENT_LENGTH)


class OwnAnswerOut(Schema):
    """An answer of the caller's, with the question it was given to."""

    assignment: UUID
    text: str | None
    fields: dict[str, Any] | None
    image_url: str | None = Field(description="With a token the image is at `assignments/{id}/image`.")
    owner_id: str | None
    metadata: dict[str, str | None] | None
    guess: str | None
    answer: str
    choice: int | None
    choices: list[int] | None
    created_at: datetime
    may_change: bool


class OwnAnswersOut(Schema):
    """A page of the caller's answers, newest first, and where the next page begins; null on the last."""

    answers: list[OwnAnswerOut]
    before: int | None


class OwnAnswersIn(Schema):
    """Where a page of answers begins."""

    before: int | None = Field(None, ge=1, le=2**63 - 1)
    unread: bool = Field(False, description="Those alone about which managers wrote something unread.")


@router.write(
    "projects/{slug:slug}/assignments/undo",
    response={200: AssignmentOut, 204: None},
    summary="Take back one's last answer, skip or flag, and hold its question again; 204 where it waits",
)
def undo_last(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    undoing.undo_last(project=project, user=person_of(request))
    held = queue.claim_next(project=project, user=person_of(request))
    return Status(204, None) if held is None else assignment_out(held)


@router.write(
    "assignments/{assignment_id}/flag", summary="Report a question as broken or sensitive instead of answering it"
)
def flag_assignment(request: HttpRequest, assignment_id: UUID, body: FlagIn) -> None:
    assignment = own_assignment(request, assignment_id, Scope.LABELS_WRITE)
    reporting.flag_question(assignment=assignment, kind=ReportKind(body.kind), comment=body.comment)


@router.get(
    "projects/{slug:slug}/answers", response=OwnAnswersOut, summary="The caller's own answers, and which may be changed"
)
def list_own_answers(request: HttpRequest, slug: str, page: Query[OwnAnswersIn]) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    found = own_answers.own_answers(project, person_of(request), before=page.before, unread=page.unread)
    takes_several = answers.label_type(project).takes_several
    return {"answers": [_answer(one, takes_several=takes_several) for one in found.answers], "before": found.before}


@router.write(
    "assignments/{assignment_id}/correction",
    response=LabelOut,
    summary="Put another answer in the place of one's own, or confirm it",
)
def correct_answer(request: HttpRequest, assignment_id: UUID, body: LabelIn) -> Any:
    own = own_assignment(request, assignment_id, Scope.LABELS_WRITE)
    stored = correcting.correct_answer(
        project=own.project,
        user=person_of(request),
        query_id=own.query_id,
        choice=answers.stored_choice(own.project, body.choice, body.choices),
    )
    return label_out(own.project, stored)


def _answer(one: own_answers.OwnAnswer, *, takes_several: bool) -> dict[str, Any]:
    return {
        "assignment": one.label.assignment_id,
        **asdict(one.question),
        "guess": one.guess,
        "answer": one.name,
        "choice": None if takes_several else one.label.choice,
        "choices": list(one.places) if takes_several else None,
        "created_at": one.label.created_at,
        "may_change": one.may_change,
    }
