"""Statistics of annotators, the data manager, and the queue of reviewers."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db.models import (
    Avg,
    BooleanField,
    Case,
    Count,
    Exists,
    F,
    Func,
    IntegerField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from annotation import selectors
from annotation.budget.spending import table_csv
from annotation.choices.plans import QualityChecks
from annotation.choices.randomizers import randomizes
from annotation.intervals import wilson_interval
from annotation.models import (
    Assignment,
    AssignmentState,
    Consensus,
    Label,
    Membership,
    Oracle,
    Project,
    Query,
    QueryState,
    Report,
    ReportKind,
    Role,
    SpanSet,
)
from annotation.models.quality import Machine, Opinion, QualityReport, Review, ReviewState
from annotation.models.questions import ASKED
from annotation.questions.selectors import (
    Checks,
    agreed_on,
    answer_name,
    answered_checks,
    answered_rightly,
    counted,
    counted_answers,
    counted_checks,
    counting_as,
    counts_equal,
    judged_from,
    marks_spans,
    names_several,
)
from annotation.selectors import Person
from annotation.templatetags.addons import FACTS

# People see their own checks in steps, so that no single answer shows which question was one.
OWN_STEP = 5


@dataclass(frozen=True, slots=True)
class PersonSheet:
    membership: Membership
    answers: int
    accepted: int
    refused: int
    checks: Checks
    missed: int = 0
    skill: float | None = None

    @property
    def waiting(self) -> int:
        return self.answers - self.accepted - self.refused

    def earned(self, price: Decimal | None) -> Decimal | None:
        return None if price is None else price * self.accepted

    def judged_by_checks(self) -> "PersonSheet":
        """Accept all but missed checks: pay by agreement would tell strangers what others answered."""
        return replace(self, accepted=self.answers - self.missed, refused=self.missed)

    @property
    def skill_percent(self) -> int | None:
        return None if self.skill is None else round(100 * self.skill)


# An answer to a retired check is paid for whatever it was: the check, not the person, may have been wrong. So is one
# that was erased since: nobody can say any more what it was.
CHECK_HOLDS = Q(query__gold__retired_at=None)
IS_CHECK = Q(query__state=QueryState.GOLD)


def _became(project: Project) -> tuple[Q, Q, Q]:
    agrees, right = counts_equal(project, "choice", "query__consensus__choice"), answered_rightly(project)
    accepted = IS_CHECK & (right | ~CHECK_HOLDS) | (~IS_CHECK & (agrees | Q(query__emptied=True)))
    missed = IS_CHECK & CHECK_HOLDS & ~right
    refused = missed | (Q(query__emptied=False) & ~IS_CHECK & Q(query__consensus__isnull=False) & ~agrees)
    return accepted, refused, missed


def annotators_work(project: Project, *, only: Sequence[User] | None = None) -> list[PersonSheet]:
    """Return all annotators, past ones too; with `only` these people, whom a restricted process may not look up."""
    members = Membership.objects.filter(project=project, role=Role.ANNOTATOR)
    labels = Label.objects.filter(query__project=project, superseded_at=None)
    checks = answered_checks(project)
    if only is None:
        known = {member.user_id: member for member in members.select_related("user")}
    else:
        given = {user.pk: user for user in only}
        known = {member.user_id: member for member in members.filter(user__in=given)}
        for user_id, member in known.items():
            member.user = given[user_id]
        labels, checks = labels.filter(annotator__in=given), checks.filter(annotator__in=given)
    accepted, refused, missed = _became(project)
    none = {"answers": 0, "accepted": 0, "refused": 0, "missed": 0}
    rows: Any = labels.order_by().values("annotator")
    rows = rows.annotate(
        answers=Count("pk"),
        accepted=Count("pk", filter=accepted),
        refused=Count("pk", filter=refused),
        missed=Count("pk", filter=missed),
    )
    counts = {row["annotator"]: {name: row[name] for name in none} for row in rows}
    found = {
        row["annotator"]: Checks(right=row["right"], answered=row["answered"])
        for row in checks.order_by()
        .values("annotator")
        .annotate(answered=Count("pk"), right=Count("pk", filter=answered_rightly(project)))
    }
    for user_id, since in judged_from(project).items():
        if user_id in found:
            found[user_id] = counted_checks(project, checks.filter(annotator=user_id), since)
    report = getattr(project, "quality_report", None)
    skills = report.skills if report else {}
    left = set(counts) - set(known)
    gone = User.objects.filter(pk__in=left) if only is None else [user for user in only if user.pk in left]
    known |= {user.pk: Membership(project=project, user=user, role="") for user in gone}
    return [
        PersonSheet(
            membership=member,
            checks=found.get(user_id, Checks(0, 0)),
            skill=skills.get(str(user_id)),
            **counts.get(user_id, none),
        )
        for user_id, member in sorted(known.items(), key=lambda item: item[1].user.username)
    ]


@dataclass(frozen=True, slots=True)
class OwnStatistics:
    sheet: PersonSheet
    today: int
    week: int
    skipped: int
    seconds: float | None
    earned: Decimal | None


def own_statistics(*, project: Project, user: User) -> OwnStatistics:
    """Return a person's figures; checks move in steps so that no question is recognised as one."""
    sheets = [sheet for sheet in annotators_work(project, only=[user]) if sheet.membership.user_id == user.pk]
    sheet = sheets[0] if sheets else PersonSheet(Membership(project=project, user=user), 0, 0, 0, Checks(0, 0))
    done = Assignment.objects.filter(project=project, annotator=user, state=AssignmentState.LABELLED)
    took = done.filter(finished_at__gte=Now() - timedelta(days=7)).aggregate(
        seconds=Avg(F("finished_at") - F("created_at"))
    )["seconds"]
    skipped = Assignment.objects.filter(project=project, annotator=user, state=AssignmentState.SKIPPED).count()
    shown = sheet.checks.answered - sheet.checks.answered % OWN_STEP
    right = round(shown * (sheet.checks.accuracy or 0.0))
    sheet = replace(sheet, checks=Checks(right=right, answered=shown))
    if project.oracle == Oracle.CROWD:
        sheet = replace(sheet, missed=shown - right).judged_by_checks()
    return OwnStatistics(
        sheet=sheet,
        today=done.filter(finished_at__gte=selectors.midnight()).count(),
        week=done.filter(finished_at__gte=timezone.now() - timedelta(days=7)).count(),
        skipped=skipped,
        seconds=None if took is None else took.total_seconds(),
        earned=sheet.earned(project.price_per_label),
    )


def quality_facts(project: Project) -> tuple[object, ...]:
    people = Membership.objects.filter(project=project, role=Role.ANNOTATOR).order_by("pk")
    states = Query.objects.filter(project=project).order_by("state").values_list("state")
    return (
        Label.objects.filter(query__project=project).aggregate(last=Max("pk"), gone=Count("superseded_at")),
        Consensus.objects.filter(project=project).aggregate(last=Max("pk"), votes=Sum("votes")),
        list(people.values_list("user", "paused_at")),
        list(states.annotate(n=Count("pk"))),
        [fact(project) for fact in FACTS],
        list(QualityReport.objects.filter(project=project).values_list("made_at", "job__state", "job__progress_done")),
    )


def payments_of(project: Project) -> list[PersonSheet]:
    machines = set(Machine.objects.filter(project=project).values_list("user_id", flat=True))
    paid = [sheet for sheet in annotators_work(project) if sheet.membership.user_id not in machines]
    return [sheet.judged_by_checks() for sheet in paid] if project.oracle == Oracle.CROWD else paid


def payments_csv(project: Project) -> Iterator[str]:
    heading = ["person", "answers", "accepted", "not accepted", "undecided", "price", "amount", "currency"]
    price = project.price_per_label
    rows = (
        [
            sheet.membership.user.username,
            *(sheet.answers, sheet.accepted, sheet.refused, sheet.waiting),
            *(price or None, sheet.earned(price), project.currency),
        ]
        for sheet in payments_of(project)
    )
    return table_csv(heading, rows)


def opinions_of(project: Project) -> QuerySet[Any]:
    opinions = Opinion.objects.filter(report__project=project).order_by("query").select_related("report")
    return opinions.annotate(owner_id=KeyTextTransform("id", "query__record__metadata"))


def opinions_csv(project: Project) -> Iterator[str]:
    rows = (
        [
            opinion.query_id,
            opinion.owner_id,
            answer_name(project, opinion.choice),
            f"{opinion.probability:.6f}",
            opinion.report.method,
        ]
        for opinion in opinions_of(project).iterator(chunk_size=2000)
    )
    return table_csv(["question", "owner_id", "class", "probability", "method"], rows)


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
        wanted_reports = {"any": open_reports, "talk": Report.objects.filter(query=OuterRef("pk"), kind__in=TALK)}
        found = found.filter(Exists(wanted_reports.get(wanted.flag, open_reports.filter(kind=wanted.flag))))
    if wanted.assigned is not None:
        found = found.filter(assigned_to=wanted.assigned, state=QueryState.OPEN)
    if readable and len(wanted.text) >= SHORTEST_SEARCH:
        said = Q(text__icontains=wanted.text) | Q(record__text__icontains=wanted.text)
        found = found.filter(said | Q(record__metadata__id=wanted.text), emptied=False)
    return found


def _naming(project: Project, answers: QuerySet[Label], place: int) -> QuerySet[Label]:
    if marks_spans(project):
        now = project.classes[place]
        names = [now, *(was for was, name in project.renamed_classes.items() if name == now)]
        # The stored form ends a span with its type.
        ends = [Q(spans__contains=json.dumps(name, ensure_ascii=False) + "]") for name in names]
        holding = SpanSet.objects.filter(reduce(or_, ends), project=project)
        return answers.filter(choice__in=holding.values("number"))
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


DECISIONS = (ReviewState.SETTLED, ReviewState.RETURNED, ReviewState.SET_ASIDE, ReviewState.SKIPPED)


def waiting_for_review(project: Project) -> QuerySet[Query]:
    return _undecided(project).filter(~Exists(_returned()))


def _undecided(project: Project) -> QuerySet[Query]:
    if randomizes(project.settings):
        return Query.objects.none()
    wanted = Q(state__in=(QueryState.DISPUTED, QueryState.IN_REVIEW))
    reviewed = QualityChecks.of(project.settings).reviewed
    if reviewed != "disputed":
        free = Q(consensus__pk__gt=project.labels_used_through, consensus__settled_by=None)
        differ = Q() if reviewed == "all" else Q(consensus__agreeing__lt=F("consensus__votes"))
        wanted |= Q(state=QueryState.CLOSED, emptied=False) & free & differ
    return Query.objects.filter(wanted, project=project)


def _returned() -> QuerySet[Report]:
    return Report.objects.filter(query=OuterRef("pk"), kind=ReportKind.RETURNED, resolved_at=None)


def queue_of(project: Project, person: Person) -> QuerySet[Query]:
    if is_manager(project, person):
        waiting = _undecided(project)
    else:
        waiting = waiting_for_review(project).exclude(
            Exists(Label.objects.filter(query=OuterRef("pk"), annotator=person.pk))
        )
    own = Review.objects.filter(query=OuterRef("pk"), reviewer=person.pk, state=ReviewState.SKIPPED).order_by()
    skipped = own.values("query").annotate(last=Max("finished_at")).values("last")
    waits = (When(state=QueryState.DISPUTED, then=Value(0)), When(state=QueryState.IN_REVIEW, then=Value(1)))
    disputed = Case(*waits, default=Value(2), output_field=IntegerField())
    return waiting.annotate(skipped_at=Subquery(skipped), returned=Exists(_returned())).order_by(
        "returned", F("skipped_at").asc(nulls_first=True), disputed, "priority", "pk"
    )


def agreed_choice(query: Query) -> int | None:
    if query.state == QueryState.IN_REVIEW:
        given = Label.objects.filter(query=query, superseded_at=None, choice__isnull=False)
        agreement = agreed_on(
            query.project, [choice for choice in given.values_list("choice", flat=True) if choice is not None]
        )
        return None if agreement is None else counted(query.project, agreement.choice)
    found = Consensus.objects.filter(query=query).values_list("choice", flat=True).first()
    return None if found is None else counted(query.project, found)


def is_manager(project: Project, person: Person) -> bool:
    return Membership.objects.filter(project=project, user=person.pk, role=Role.MANAGER).exists()


def undoable_review(project: Project, person: Person) -> Review | None:
    lately = Review.objects.filter(project=project, reviewer=person.pk, state__in=DECISIONS)
    return lately.filter(finished_at__gte=Now() - selectors.UNDO_WINDOW).order_by("-finished_at", "-pk").first()


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    reviewed: int
    waiting: int

    @property
    def together(self) -> int:
        return self.reviewed + self.waiting


def progress_of(project: Project) -> ReviewProgress:
    decided = Consensus.objects.filter(project=project, settled_by__isnull=False)
    return ReviewProgress(decided.count(), waiting_for_review(project).count())


@dataclass(frozen=True, slots=True)
class DrawnReviews:
    waiting: int
    decided: int
    changed: int

    @property
    def interval(self) -> str:
        low, high = wilson_interval(self.changed, self.decided)
        return f"{100 * low:.0f}-{100 * high:.0f} %"


def drawn_reviews(project: Project) -> DrawnReviews | None:
    drawn = Query.objects.filter(project=project, drawn_for_review=True)
    if not project.review_share and not drawn.exists():
        return None
    found = Consensus.objects.filter(query__in=drawn, changed__isnull=False).aggregate(
        decided=Count("pk"), changed=Count("pk", filter=Q(changed=True))
    )
    return DrawnReviews(waiting=drawn.filter(state=QueryState.IN_REVIEW).count(), **found)


def counted_votes(query: Query) -> list[tuple[str, int]]:
    rows = Label.objects.filter(query=query, superseded_at=None).values_list("choice").annotate(n=Count("pk"))
    text = query.text if query.record is None else query.record.text
    return [
        (answer_name(query.project, choice, text), n) for choice, n in sorted(rows, key=lambda row: (-row[1], row[0]))
    ]
