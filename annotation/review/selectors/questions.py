"""Selectors of the data manager. Text is neither shown nor searched where the manager may not read it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, QuerySet, Value
from django.urls import reverse
from django.utils import timezone

from annotation import selectors
from annotation.models import (
    Assignment,
    AssignmentState,
    Consensus,
    Label,
    Membership,
    Project,
    Query,
    QueryState,
    Report,
    ReportKind,
    Role,
)
from annotation.models.questions import ASKED
from annotation.questions.selectors.answers import answer_name, counted, counted_answers, counting_as, names_several

PAGE = 50
# What managers and annotators say to each other, beside what they report.
TALK = (ReportKind.COMMENT, ReportKind.RETURNED)
# What whoever they are for did in the end; reports are settled.
ENDED = {ReportKind.COMMENT: "read", ReportKind.RETURNED: "looked_again"}
# Shorter ones fit nearly everything.
SHORTEST_SEARCH = 3


@dataclass(frozen=True, slots=True)
class WantedQuestions:
    state: str = ""
    choice: int | None = None
    annotator: int | None = None
    agreement: str = ""
    round_number: int | None = None
    newer_days: int | None = None
    older_days: int | None = None
    flag: str = ""
    assigned: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    query: Query
    shown: selectors.Question | None
    answers: Sequence[tuple[str, int]]
    people: Sequence[str]
    agreed: str | None
    reports: Sequence[Report]
    answered_at: datetime | None


@dataclass(frozen=True, slots=True)
class QuestionPage:
    rows: Sequence[Row]
    before: int | None


@dataclass(frozen=True, slots=True)
class QuestionEvent:
    when: datetime
    who: str
    kind: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Answering:
    id: int
    name: str
    has_left: bool


def known_annotators(project: Project) -> list[Answering]:
    member = Exists(Membership.objects.filter(project=project, role=Role.ANNOTATOR, user=OuterRef("pk")))
    turns = Assignment.objects.filter(project=project, annotator=OuterRef("pk"), state=AssignmentState.LABELLED)
    known = (
        get_user_model().objects.alias(member=member, answered=Exists(turns)).filter(Q(member=True) | Q(answered=True))
    )
    return [
        Answering(pk, name, not stays)
        for pk, name, stays in known.annotate(stays=member).order_by("username").values_list("pk", "username", "stays")
    ]


def shown_to_manager(project: Project, query: Query) -> selectors.Question | None:
    image_url = reverse("annotation:asked_image", args=[project.slug, query.pk])
    return None if query.emptied else selectors.shown_of(project, query, image_url=image_url)


def questions(project: Project, wanted: WantedQuestions, *, readable: bool, before: int | None = None) -> QuestionPage:
    found = _narrowed(project, wanted, readable=readable)
    if before is not None:
        found = found.filter(pk__lt=before)
    if readable:
        found = found.select_related("record")
    queries = list(found.select_related("assigned_to").order_by("-pk")[: PAGE + 1])
    more, queries = len(queries) > PAGE, queries[:PAGE]
    return QuestionPage(question_rows(project, queries, readable=readable), queries[-1].pk if more else None)


def question_rows(project: Project, queries: Sequence[Query], *, readable: bool) -> list[Row]:
    ids = [query.pk for query in queries]
    given: dict[int, list[Label]] = {}
    current = Label.objects.filter(query__in=ids, superseded_at=None, choice__isnull=False)
    for label in current.select_related("annotator").order_by("pk"):
        given.setdefault(label.query_id, []).append(label)
    agreed = {one.query_id: one for one in Consensus.objects.filter(query__in=ids)}
    said: dict[int, list[Report]] = {}
    for report in Report.objects.filter(query__in=ids, resolved_at=None).select_related("annotator").order_by("pk"):
        said.setdefault(report.query_id, []).append(report)
    return [
        Row(
            query=query,
            shown=shown_to_manager(project, query) if readable else None,
            answers=counted_answers(
                project, [label.choice for label in given.get(query.pk, ()) if label.choice is not None]
            ),
            people=[label.annotator.get_username() for label in given.get(query.pk, ())],
            agreed=_agreed_name(project, agreed.get(query.pk)) if not query.emptied else None,
            reports=said.get(query.pk, ()),
            answered_at=max((label.created_at for label in given.get(query.pk, ())), default=None),
        )
        for query in queries
    ]


def _narrowed(project: Project, wanted: WantedQuestions, *, readable: bool) -> QuerySet[Query]:
    found = Query.objects.filter(project=project, state__in=[wanted.state] if wanted.state in ASKED else ASKED)
    answers = Label.objects.filter(query=OuterRef("pk"), superseded_at=None)
    if wanted.choice is not None:
        found = found.filter(Exists(_naming(project, answers, wanted.choice)))
    if wanted.annotator is not None:
        found = found.filter(Exists(answers.filter(annotator=wanted.annotator)))
    if wanted.agreement == "all":
        found = found.filter(consensus__votes=F("consensus__agreeing"), consensus__votes__gt=1)
    elif wanted.agreement == "divided":
        found = found.filter(Q(state=QueryState.DISPUTED) | Q(consensus__votes__gt=F("consensus__agreeing")))
    if wanted.round_number is not None:
        found = found.filter(round_number=wanted.round_number)
    now = timezone.now()
    if wanted.newer_days is not None:
        found = found.filter(Exists(answers.filter(created_at__gte=now - timedelta(days=wanted.newer_days))))
    if wanted.older_days is not None:
        then = now - timedelta(days=wanted.older_days)
        found = found.filter(~Exists(answers.filter(created_at__gte=then)), opened_at__lt=then)
    if wanted.flag:
        open_reports = Report.objects.filter(query=OuterRef("pk"), resolved_at=None)
        wanted_reports = {
            "any": open_reports,
            "talk": Report.objects.filter(query=OuterRef("pk"), kind__in=TALK),
        }
        found = found.filter(Exists(wanted_reports.get(wanted.flag, open_reports.filter(kind=wanted.flag))))
    if wanted.assigned is not None:
        found = found.filter(assigned_to=wanted.assigned, state=QueryState.OPEN)
    if readable and len(wanted.text) >= SHORTEST_SEARCH:
        said = Q(text__icontains=wanted.text) | Q(record__text__icontains=wanted.text)
        found = found.filter(said | Q(record__metadata__id=wanted.text), emptied=False)
    return found


def _naming(project: Project, answers: QuerySet[Label], place: int) -> QuerySet[Label]:
    if not names_several(project):
        return answers.filter(choice__in=counting_as(project, place))
    holds = Func(F("choice"), Value(place), function="annotation_set_holds", output_field=BooleanField())
    return answers.filter(choice__isnull=False).alias(holds=holds).filter(holds=True)


def _agreed_name(project: Project, agreed: Consensus | None) -> str | None:
    return None if agreed is None else answer_name(project, counted(project, agreed.choice))


def history_of(project: Project, query: Query) -> list[QuestionEvent]:
    events: list[QuestionEvent] = []
    labels = Label.objects.filter(query=query).select_related("annotator")
    for label in labels:
        value = "" if label.choice is None else answer_name(project, label.choice)
        kind = "corrected" if label.supersedes_id else "answered"
        events.append(QuestionEvent(label.created_at, label.annotator.get_username(), kind, value))
    taken = labels.filter(superseded_at__isnull=False, superseded_by=None)
    events += [
        QuestionEvent(one.superseded_at, one.annotator.get_username(), "taken_back")
        for one in taken
        if one.superseded_at
    ]
    turns = Assignment.objects.filter(query=query).select_related("annotator")
    for turn in turns.filter(state=AssignmentState.SKIPPED, finished_at__isnull=False):
        if turn.finished_at is not None:
            events.append(QuestionEvent(turn.finished_at, turn.annotator.get_username(), "skipped", turn.skip_reason))
    for turn in turns.filter(state=AssignmentState.LEASED):
        events.append(QuestionEvent(turn.created_at, turn.annotator.get_username(), "held"))
    for report in Report.objects.filter(query=query).select_related("annotator", "resolved_by"):
        who = report.annotator.get_username()
        events.append(QuestionEvent(report.created_at, who, str(report.kind)))
        if report.resolved_at is not None and report.resolved_by is not None:
            ended = "reply" if report.reply else ENDED.get(ReportKind(report.kind), "resolved")
            to = who if report.reply else ""
            events.append(QuestionEvent(report.resolved_at, report.resolved_by.get_username(), ended, to))
    consensus: Any = Consensus.objects.filter(query=query).select_related("settled_by").first()
    if consensus is not None and not query.emptied:
        who = consensus.settled_by.get_username() if consensus.settled_by else ""
        events.append(QuestionEvent(consensus.created_at, who, "agreed", _agreed_name(project, consensus) or ""))
    for action in project.actions.filter(target__query_id=query.pk):
        events.append(QuestionEvent(action.created_at, action.actor, "action", action.route))
    return sorted(events, key=lambda event: event.when)
