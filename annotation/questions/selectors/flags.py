"""Flags and comments on questions, for managers and for the annotator who wrote them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Count, Max, Q, QuerySet

from annotation import selectors
from annotation.models import (
    Assignment,
    AssignmentState,
    Oracle,
    Project,
    Query,
    QueryState,
    Report,
    ReportKind,
    Role,
)
from annotation.models.questions import UNREAD_BY_ANNOTATOR
from privacy.choices import Kind
from privacy.wording import Message, as_message

SHOWN = 200
OTHERS_SHOWN = 20
FROM_ANNOTATORS = (ReportKind.BROKEN, ReportKind.SENSITIVE, ReportKind.COMMENT)


@dataclass(frozen=True, slots=True)
class SetAside:
    """A question out of the queue: what it shows, if the manager may see that, and why nobody answered."""

    query: Query
    text: str | None
    reasons: Sequence[tuple[str, int]]
    reports: Sequence[Report]


def questions_set_aside(project: Project, user: AbstractBaseUser | AnonymousUser) -> list[SetAside]:
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
    return _open_reports(project).exclude(query__state=QueryState.SET_ASIDE)[:SHOWN]


def count_for_managers(project: Project) -> int:
    reported = Q(reports__resolved_at=None, reports__kind__in=FROM_ANNOTATORS)
    return Query.objects.filter(Q(state=QueryState.SET_ASIDE) | reported, project=project).distinct().count()


def may_read_questions(project: Project, user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether a manager may read questions: gate output, or records they are asked about themselves."""
    return (
        project.oracle == Oracle.CROWD
        or selectors.projects_of(user, roles=(Role.ANNOTATOR,)).filter(pk=project.pk).exists()
    )


def _text(query: Query) -> str | None:
    return query.text if query.record is None else query.record.text


def _open_reports(project: Project) -> QuerySet[Report]:
    said = Report.objects.filter(project=project, resolved_at=None, kind__in=FROM_ANNOTATORS)
    return said.select_related("annotator", "query").order_by("pk")


def reply_refusal(project: Project) -> Message | None:
    if project.oracle == Oracle.CROWD:
        return as_message(
            "In front of a crowd nobody writes back: what a manager writes may tell what others answered."
        )
    if project.settings.get(Kind.RANDOMIZER.key):
        return as_message("Where answers are randomised each is given once, and nobody writes about it.")
    return None


def reports_of(project: Project, query_id: int) -> QuerySet[Report]:
    said = Report.objects.filter(project=project, query=query_id)
    return said.select_related("annotator", "resolved_by").order_by("pk")


def own_flags(project: Project, user_id: int, query_ids: Iterable[int]) -> dict[int, list[Report]]:
    found: dict[int, list[Report]] = {}
    for one in _of(project, user_id).filter(query__in=list(query_ids)).order_by("pk"):
        found.setdefault(one.query_id, []).append(one)
    return found


def own_words(project: Project, user_id: int, *, unread: bool) -> list[tuple[UUID, Report]]:
    said = unread_by(project, user_id) if unread else _of(project, user_id)
    rows = list(said.order_by("-pk")[:SHOWN])
    turns = Assignment.objects.filter(annotator=user_id, query__in={one.query_id for one in rows})
    places = dict(turns.values_list("query", "pk"))
    return [(places[one.query_id], one) for one in rows if one.query_id in places]


def unread_by(project: Project, user_id: int) -> QuerySet[Report]:
    return _of(project, user_id).filter(UNREAD_BY_ANNOTATOR)


def about_other_questions(project: Project, user_id: int, *, unread: bool) -> list[int]:
    """Return questions managers wrote to a person about where no answer of theirs is shown, newest first."""
    said = unread_by(project, user_id) if unread else _of(project, user_id).exclude(reply="", kind__in=FROM_ANNOTATORS)
    own = Query.objects.filter(labels__annotator=user_id, labels__superseded_at=None, labels__choice__isnull=False)
    said = said.exclude(query__in=own.exclude(state=QueryState.SET_ASIDE).values("pk"))
    rows = said.values("query").annotate(newest=Max("pk")).order_by("-newest")
    return [row["query"] for row in rows[:OTHERS_SHOWN]]


def _of(project: Project, user_id: int) -> QuerySet[Report]:
    return Report.objects.filter(project=project, annotator=user_id)
