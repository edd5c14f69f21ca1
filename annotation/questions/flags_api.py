"""REST routes of flags and comments on questions, and of questions set aside."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Schema

from annotation import selectors
from annotation.models import Query, ReportKind, Role
from annotation.people.identity import person_of
from annotation.questions.selectors.flags import own_words, questions_set_aside, reports_of, reports_on_others
from annotation.questions.services import flags
from annotation.questions.services.flags import MAX_COMMENT_LENGTH
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, own_assignment, project_for, row_id
from annotation.work.services.tokens import Scope

router = RoomRouter()


class ReportOut(Answer, reads=Reads.MANAGED):
    """What an annotator said about a question, and no manager has settled."""

    report: int = Field(alias="pk")
    question: int = Field(alias="query_id")
    annotator: str = Field(alias="annotator.username")
    kind: ReportKind
    comment: str
    created_at: datetime


class SkippedOut(Answer, reads=Reads.MANAGED):
    """How many people gave a question back for one reason."""

    reason: str
    people: int


class SetAsideOut(Answer, reads=Reads.MANAGED):
    """A question out of the queue, and why; its text for those alone who may read what questions show."""

    question: int
    round: int
    text: str | None
    skipped: list[SkippedOut]
    reports: list[ReportOut]


class SetAsideDecisionIn(Schema):
    """Whether a question that was set aside is asked again, or left out for good."""

    decision: Literal["ask", "leave_out"] = Field(description="What was reported about it is settled either way.")


@router.get(
    "projects/{slug:slug}/set-aside",
    response=list[SetAsideOut],
    summary="Questions nobody gets further with, the oldest 200",
)
def list_set_aside(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    return [
        {
            "question": one.query.pk,
            "round": one.query.round_number,
            "text": one.text,
            "skipped": [{"reason": reason, "people": people} for reason, people in one.reasons],
            "reports": one.reports,
        }
        for one in questions_set_aside(project, person_of(request))
    ]


@router.write(
    "projects/{slug:slug}/set-aside/{query_id}", summary="Have a question asked again, or leave it out for good"
)
def decide_set_aside(request: HttpRequest, slug: str, query_id: str, body: SetAsideDecisionIn) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    change = flags.ask_set_aside_again if body.decision == "ask" else flags.leave_out_set_aside
    try:
        change(project=project, query_id=row_id(query_id) or 0, user=person_of(request))
    except Query.DoesNotExist as absent:
        raise Http404 from absent


@router.get(
    "projects/{slug:slug}/reports",
    response=list[ReportOut],
    summary="What annotators say about other questions, the oldest 200",
)
def list_reports(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    return reports_on_others(project)


@router.remove("projects/{slug:slug}/reports/{report_id}", summary="Take a report off the list; it stays stored")
def resolve_report(request: HttpRequest, slug: str, report_id: str) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    report = get_object_or_404(project.reports, pk=row_id(report_id))
    flags.resolve_report(project=project, report_id=report.pk, user=person_of(request))


class CommentOut(ReportOut):
    """What an annotator said about a question, or with `returned` was asked to look at again, and what came of it."""

    resolved_at: datetime | None = Field(None, description="When a manager settled it, or the annotator looked again.")
    reply: str
    read_at: datetime | None = Field(None, description="When the annotator read the reply.")


class OwnCommentOut(Answer, reads=Reads.OWN_WORK):
    """What the caller said about a question, or a manager sent back, with a manager's reply; no manager is named."""

    assignment: UUID
    kind: ReportKind
    text: str
    created_at: datetime
    reply: str
    is_unread: bool = Field(description="Whether a manager wrote here and the caller has not read it.")


class CommentIn(Schema):
    """What to say, in plain text."""

    text: str = Field(min_length=1, max_length=MAX_COMMENT_LENGTH)


@router.write("projects/{slug:slug}/reports/{report_id}", summary="Reply to what an annotator said, which settles it")
def reply_to_report(request: HttpRequest, slug: str, report_id: str, body: CommentIn) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    report = get_object_or_404(project.reports, pk=row_id(report_id))
    flags.reply(project=project, report_id=report.pk, text=body.text, author=person_of(request))


@router.get(
    "projects/{slug:slug}/questions/{query_id}/comments",
    response=list[CommentOut],
    summary="What was said about a question, oldest first",
)
def list_comments(request: HttpRequest, slug: str, query_id: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    query = get_object_or_404(selectors.asked_questions(project), pk=row_id(query_id))
    return reports_of(project, query.pk)


@router.get(
    "projects/{slug:slug}/comments",
    response=list[OwnCommentOut],
    summary="What the caller said about questions and managers wrote back, the newest 200, newest first",
)
def list_own_comments(request: HttpRequest, slug: str, unread: bool = False) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    return [
        {
            "assignment": assignment,
            "kind": said.kind,
            "text": said.comment,
            "created_at": said.created_at,
            "reply": said.reply,
            "is_unread": said.is_unread,
        }
        for assignment, said in own_words(project, person_of(request).pk, unread=unread)
    ]


@router.write("assignments/{assignment_id}/comments", summary="Tell the managers something about a question")
def comment_on_assignment(request: HttpRequest, assignment_id: UUID, body: CommentIn) -> None:
    flags.comment_on(assignment=own_assignment(request, assignment_id, Scope.LABELS_WRITE), comment=body.text)


@router.write(
    "assignments/{assignment_id}/comments/read",
    summary="Mark as read what managers wrote about a question; what came back waits while it may be changed",
)
def mark_comments_read(request: HttpRequest, assignment_id: UUID) -> None:
    flags.mark_read(assignment=own_assignment(request, assignment_id, Scope.LABELS_WRITE))
