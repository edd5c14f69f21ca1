"""Flags and comments on questions, for managers and for the annotator who wrote them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Case, Count, IntegerField, Max, Min, Q, QuerySet, Value, When

from annotation import selectors
from annotation.models import (
    Assignment,
    AssignmentState,
    Membership,
    Oracle,
    Project,
    Query,
    QueryState,
    Report,
    ReportKind,
    Role,
)
from privacy.choices import Kind
from privacy.wording import Message, as_message

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


# What a manager says to an annotator.
FROM_MANAGERS = (ReportKind.RETURNED, ReportKind.REPLY)
OTHERS_SHOWN = 20
WORDS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Said:
    """One thing said about a question; `author` is empty where no manager's name is told."""

    when: datetime
    kind: ReportKind
    author: str
    text: str
    read_at: datetime | None

    @property
    def from_manager(self) -> bool:
        """Say whether a manager said it to the annotator."""
        return self.kind in FROM_MANAGERS

    @property
    def is_unread(self) -> bool:
        """Say whether whoever it is for has not read it, or not done what it asks for."""
        return self.read_at is None


@dataclass(frozen=True, slots=True)
class Thread:
    """What managers and one annotator said to each other about one question, oldest first."""

    person_id: int
    name: str
    said: Sequence[Said]
    may_write: bool

    @property
    def is_unread(self) -> bool:
        """Say whether the annotator said something that no manager has read."""
        return any(one.is_unread and not one.from_manager for one in self.said)


def conversation_refusal(project: Project) -> Message | None:
    """Say why managers write to nobody in a project; None where they may."""
    if project.oracle == Oracle.CROWD:
        return as_message(
            "In front of a crowd nobody writes back: what a manager writes may tell what others answered."
        )
    if project.settings.get(Kind.RANDOMIZER.key):
        return as_message("Where answers are randomised each is given once, and nobody writes about it.")
    return None


def own_threads(project: Project, user_id: int, query_ids: Iterable[int]) -> dict[int, list[Said]]:
    """Return what a person said about questions and what managers said to them, by question, oldest first."""
    found: dict[int, list[Said]] = {}
    for one in _of(project, user_id).filter(query__in=list(query_ids)).order_by("pk"):
        found.setdefault(one.query_id, []).append(_said(one, author=""))
    return found


def own_words(project: Project, user_id: int, *, unread: bool) -> list[tuple[UUID, Said]]:
    """Return what a person and managers said to each other, newest first, each with the turn at its question."""
    said = unread_by(project, user_id) if unread else _of(project, user_id)
    rows = list(said.order_by("-pk")[:WORDS_SHOWN])
    turns = Assignment.objects.filter(annotator=user_id, query__in={one.query_id for one in rows})
    places = dict(turns.values_list("query", "pk"))
    return [(places[one.query_id], _said(one, author="")) for one in rows if one.query_id in places]


def unread_by(project: Project, user_id: int) -> QuerySet[Report]:
    """Return what managers said to a person who has not read it, or not looked again."""
    return _of(project, user_id).filter(kind__in=FROM_MANAGERS, resolved_at=None)


def about_other_questions(project: Project, user_id: int, *, unread: bool) -> list[int]:
    """Return questions managers wrote to a person about whose answer is not theirs, or not shown; unread first."""
    said = unread_by(project, user_id) if unread else _of(project, user_id).filter(kind__in=FROM_MANAGERS)
    own = Query.objects.filter(labels__annotator=user_id, labels__superseded_at=None, labels__choice__isnull=False)
    said = said.exclude(query__in=own.exclude(state=QueryState.SET_ASIDE).values("pk"))
    is_read = Case(When(resolved_at=None, then=Value(0)), default=Value(1), output_field=IntegerField())
    rows = said.values("query").annotate(newest=Max("pk"), is_read=Min(is_read)).order_by("is_read", "-newest")
    return [row["query"] for row in rows[:OTHERS_SHOWN]]


def threads_of(project: Project, query_id: int) -> list[Thread]:
    """Return what was said about a question, by annotator; whoever answered it has a thread, an empty one last."""
    answered = Assignment.objects.filter(project=project, query=query_id, state=AssignmentState.LABELLED)
    names: dict[int, str] = dict(answered.values_list("annotator", "annotator__username"))
    said: dict[int, list[Said]] = {}
    found = Report.objects.filter(project=project, query=query_id).select_related("annotator", "author").order_by("pk")
    for one in found:
        names.setdefault(one.annotator_id, one.annotator.get_username())
        said.setdefault(one.annotator_id, []).append(_said(one, author=one.author.get_username() if one.author else ""))
    still = set(may_be_written_to(project, query_id).filter(user__in=list(names)).values_list("user", flat=True))
    return [
        Thread(person, name, said.get(person, ()), person in still)
        for person, name in sorted(names.items(), key=lambda each: (each[0] not in said, each[1]))
    ]


def may_be_written_to(project: Project, query_id: int) -> QuerySet[Membership]:
    """Return who was asked a question and still is an annotator, of a project where managers write to them."""
    asked = Assignment.objects.filter(query=query_id).values("annotator")
    found = Membership.objects.filter(project=project, role=Role.ANNOTATOR, user__in=asked)
    return found if conversation_refusal(project) is None else found.none()


def _of(project: Project, user_id: int) -> QuerySet[Report]:
    return Report.objects.filter(project=project, annotator=user_id)


def _said(report: Report, *, author: str) -> Said:
    return Said(
        when=report.created_at,
        kind=ReportKind(report.kind),
        author=author,
        text=report.comment,
        read_at=report.resolved_at,
    )
