"""REST routes of what annotators report: questions nobody gets further with, and what is said about others."""

from datetime import datetime
from typing import Any, Literal

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Schema

from annotation.models import Query, ReportKind, Role
from annotation.people.identity import person_of
from annotation.reports.selectors import waiting
from annotation.reports.services import reporting, setting_aside
from annotation.work.rest import RoomRouter, project_for, row_id
from annotation.work.services.tokens import Scope

router = RoomRouter()


class ReportOut(Schema):
    """What an annotator said about a question, and no manager has settled."""

    report: int = Field(alias="pk")
    question: int = Field(alias="query_id")
    annotator: str = Field(alias="annotator.username")
    kind: ReportKind
    comment: str
    created_at: datetime


class SkippedOut(Schema):
    """How many people gave a question back for one reason."""

    reason: str
    people: int


class SetAsideOut(Schema):
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
        for one in waiting.questions_set_aside(project, person_of(request))
    ]


@router.write(
    "projects/{slug:slug}/set-aside/{query_id}", summary="Have a question asked again, or leave it out for good"
)
def decide_set_aside(request: HttpRequest, slug: str, query_id: str, body: SetAsideDecisionIn) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    change = setting_aside.ask_set_aside_again if body.decision == "ask" else setting_aside.leave_out_set_aside
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
    return waiting.reports_on_others(project)


@router.remove("projects/{slug:slug}/reports/{report_id}", summary="Take a report off the list; it stays stored")
def resolve_report(request: HttpRequest, slug: str, report_id: str) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    report = get_object_or_404(project.reports, pk=row_id(report_id))
    reporting.resolve_report(project=project, report_id=report.pk, user=person_of(request))
