"""What managers see of the questions nobody gets further with, and of what annotators say about questions."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Count, Q, QuerySet

from annotation import selectors
from annotation.models import Assignment, AssignmentState, Oracle, Project, Query, QueryState, Report, ReportKind, Role

SHOWN = 200
SAID_BY_ANNOTATORS = (ReportKind.BROKEN, ReportKind.SENSITIVE, ReportKind.COMMENT)


@dataclass(frozen=True, slots=True)
class SetAside:
    """A question out of the queue: what it shows, if the manager may see that, and why nobody answered."""

    query: Query
    text: str | None
    reasons: Sequence[tuple[str, int]]
    reports: Sequence[Report]


def questions_set_aside(project: Project, user: AbstractBaseUser | AnonymousUser) -> list[SetAside]:
    """Return the questions a manager has to decide about, oldest first."""
    queries = list(
        Query.objects.filter(project=project, state=QueryState.SET_ASIDE)
        .select_related("record")
        .order_by("pk")[:SHOWN]
    )
    ids = [query.pk for query in queries]
    skipped = (
        Assignment.objects.filter(query__in=ids, state=AssignmentState.SKIPPED)
        .values_list("query", "skip_reason")
        .annotate(people=Count("pk"))
        .order_by("-people")
    )
    reasons: dict[int, list[tuple[str, int]]] = {}
    for query_id, reason, people in skipped:
        reasons.setdefault(query_id, []).append((reason, people))
    said: dict[int, list[Report]] = {}
    for report in _open_reports(project).filter(query__in=ids):
        said.setdefault(report.query_id, []).append(report)
    readable = may_read_questions(project, user)
    return [
        SetAside(query, _text(query) if readable else None, reasons.get(query.pk, ()), said.get(query.pk, ()))
        for query in queries
    ]


def reports_on_others(project: Project) -> QuerySet[Report]:
    """Return what was said about questions that are still asked, or answered, oldest first."""
    return _open_reports(project).exclude(query__state=QueryState.SET_ASIDE)[:SHOWN]


def count_for_managers(project: Project) -> int:
    """Return how many questions and reports wait for a manager."""
    reported = Q(reports__resolved_at=None, reports__kind__in=SAID_BY_ANNOTATORS)
    return Query.objects.filter(Q(state=QueryState.SET_ASIDE) | reported, project=project).distinct().count()


def may_read_questions(project: Project, user: AbstractBaseUser | AnonymousUser) -> bool:
    """Say whether a manager may read what a question shows: gate output, or records they are asked about themselves."""
    return (
        project.oracle == Oracle.CROWD
        or selectors.projects_of(user, roles=(Role.ANNOTATOR,)).filter(pk=project.pk).exists()
    )


def _text(query: Query) -> str | None:
    return query.text if query.record is None else query.record.text


def _open_reports(project: Project) -> QuerySet[Report]:
    said = Report.objects.filter(project=project, resolved_at=None, kind__in=SAID_BY_ANNOTATORS)
    return said.select_related("annotator", "query").order_by("pk")
