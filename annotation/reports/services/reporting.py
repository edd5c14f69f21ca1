"""What an annotator says about a question beside an answer: that it is broken or sensitive, or a comment."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from annotation.errors import AlreadyLabelled
from annotation.models import Assignment, AssignmentState, Project, Query, Report, ReportKind
from annotation.reports.services import setting_aside

MAX_COMMENT_LENGTH = 1000


def flag_question(*, assignment: Assignment, kind: ReportKind, comment: str = "") -> Report:
    """Report a question instead of answering it; flagging it twice is one report.

    A broken one is skipped. A sensitive one leaves the queue and everybody's page at once.
    """
    project = assignment.project
    with transaction.atomic():
        query = Query.objects.select_for_update(no_key=True).get(pk=assignment.query_id)
        current = Assignment.objects.select_for_update(no_key=True).get(pk=assignment.pk)
        if current.state == AssignmentState.LABELLED:
            raise AlreadyLabelled("You have answered this question before. Undo that answer first.")
        report, _created = Report.objects.get_or_create(
            query=query,
            annotator_id=assignment.annotator_id,
            kind=kind,
            resolved_at=None,
            defaults={"project": project, "comment": comment[:MAX_COMMENT_LENGTH]},
        )
        if current.state == AssignmentState.LEASED:
            Query.objects.filter(pk=query.pk).update(open_slots=F("open_slots") + 1)
        Assignment.objects.filter(pk=current.pk).update(
            state=AssignmentState.SKIPPED, skip_reason=kind, finished_at=Now()
        )
        if kind == ReportKind.SENSITIVE:
            setting_aside.set_aside(project=project, query=query)
            setting_aside.end_leases(query=query)
        else:
            setting_aside.set_aside_if_nobody_answers(project=project, query=query)
    return report


def comment_on(*, assignment: Assignment, comment: str) -> Report:
    """Tell the managers something about a question; the same words twice are one comment."""
    report, _created = Report.objects.get_or_create(
        project=assignment.project,
        query_id=assignment.query_id,
        annotator_id=assignment.annotator_id,
        kind=ReportKind.COMMENT,
        comment=comment[:MAX_COMMENT_LENGTH],
        resolved_at=None,
    )
    return report


def resolve_report(*, project: Project, report_id: int, user: AbstractBaseUser) -> None:
    """Take a report off the managers' list; it stays stored."""
    Report.objects.filter(pk=report_id, project=project, resolved_at=None).update(
        resolved_at=Now(), resolved_by=user.pk
    )
