"""Annotators' statistics, hidden checks and agreement."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Avg, Count, F, Max, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Now
from django.utils import timezone

from annotation import selectors
from annotation.budget.spending import table_csv
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
    Role,
)
from annotation.models.machines import MachineAnnotator
from annotation.models.quality import Opinion, QualityReport
from annotation.questions.selectors.answers import answer_name, counts_equal
from annotation.questions.selectors.checks import Checks, answered_checks, answered_rightly, counted_checks, judged_from
from privacy.choices import Kind

# Where most people of a question gave one answer, whether that is the machine's; ties say nothing.
COMPARED = """
WITH mine AS (
    SELECT label.query_id, label.choice
    FROM annotation_label label JOIN annotation_query query ON query.id = label.query_id
    WHERE label.annotator_id = %(machine)s AND query.project_id = %(project)s AND query.state <> 'gold'
      AND label.superseded_at IS NULL AND label.choice IS NOT NULL
), votes AS (
    SELECT label.query_id, label.choice, count(*) AS n
    FROM annotation_label label JOIN mine ON mine.query_id = label.query_id
    WHERE label.annotator_id <> %(machine)s AND label.superseded_at IS NULL AND label.choice IS NOT NULL
    GROUP BY label.query_id, label.choice
), most AS (
    SELECT query_id, max(n) AS n FROM votes GROUP BY query_id
), people AS (
    SELECT votes.query_id, min(votes.choice) AS choice FROM votes JOIN most USING (query_id, n)
    GROUP BY votes.query_id HAVING count(*) = 1
)
SELECT count(*), count(*) FILTER (WHERE mine.choice = people.choice) FROM mine JOIN people USING (query_id)
"""


@dataclass(frozen=True, slots=True)
class MachineSheet:
    """Figures of a machine; `compared` counts its questions on which people have one most frequent answer."""

    machine: MachineAnnotator
    endpoint: str
    most_requests: int | None
    compared: int
    agreeing: int

    @property
    def percent(self) -> float:
        return 100 * self.agreeing / self.compared if self.compared else 0.0

    @property
    def percent_low(self) -> float:
        return 100 * wilson_interval(self.agreeing, self.compared)[0]

    @property
    def percent_high(self) -> float:
        return 100 * wilson_interval(self.agreeing, self.compared)[1]


def machine_sheet(project: Project) -> MachineSheet | None:
    machine = MachineAnnotator.objects.select_related("user").filter(project=project).first()
    if machine is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(COMPARED, {"machine": machine.user_id, "project": project.pk})
        compared, agreeing = cursor.fetchone()
    is_on = bool(project.settings.get(Kind.MACHINE.key))
    return MachineSheet(
        machine=machine,
        endpoint=project.settings.get("machine_endpoint", "") if is_on else "",
        most_requests=project.settings.get("machine_requests") if is_on else None,
        compared=compared,
        agreeing=agreeing,
    )


def machine_users(project: Project) -> set[int]:
    return set(MachineAnnotator.objects.filter(project=project).values_list("user_id", flat=True))


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
    counts = {
        row["annotator"]: row
        for row in labels.order_by()
        .values("annotator")
        .annotate(
            answers=Count("pk"),
            accepted=Count("pk", filter=accepted),
            refused=Count("pk", filter=refused),
            missed=Count("pk", filter=missed),
        )
    }
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
    none = {"answers": 0, "accepted": 0, "refused": 0, "missed": 0}
    sheets = []
    left = set(counts) - set(known)
    gone = User.objects.filter(pk__in=left) if only is None else [user for user in only if user.pk in left]
    known |= {user.pk: Membership(project=project, user=user, role="") for user in gone}
    for user_id, member in sorted(known.items(), key=lambda item: item[1].user.username):
        row = counts.get(user_id, none)
        sheets.append(
            PersonSheet(
                membership=member,
                answers=row["answers"],
                accepted=row["accepted"],
                refused=row["refused"],
                checks=found.get(user_id, Checks(0, 0)),
                missed=row["missed"],
                skill=skills.get(str(user_id)),
            )
        )
    return sheets


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
        earned=None if project.price_per_label is None else project.price_per_label * sheet.accepted,
    )


def quality_facts(project: Project) -> tuple[object, ...]:
    """Return what changes whenever the figures of the quality page do."""
    people = Membership.objects.filter(project=project, role=Role.ANNOTATOR).order_by("pk")
    states = Query.objects.filter(project=project).order_by("state").values_list("state")
    machine = MachineAnnotator.objects.filter(project=project)
    return (
        Label.objects.filter(query__project=project).aggregate(last=Max("pk"), gone=Count("superseded_at")),
        Consensus.objects.filter(project=project).aggregate(last=Max("pk"), votes=Sum("votes")),
        list(people.values_list("user", "paused_at")),
        list(states.annotate(n=Count("pk"))),
        list(machine.values_list("requests", "unusable", "tokens", "faults")),
        list(QualityReport.objects.filter(project=project).values_list("made_at", "job__state", "job__progress_done")),
    )


@dataclass(frozen=True, slots=True)
class Payment:
    sheet: PersonSheet
    price: Decimal | None

    @property
    def amount(self) -> Decimal | None:
        return None if self.price is None else self.price * self.sheet.accepted


def payments_of(project: Project) -> list[Payment]:
    """Return what people earned; in front of a crowd by checks alone. A language model is not paid."""
    machines, strangers = machine_users(project), project.oracle == Oracle.CROWD
    return [
        Payment(person.judged_by_checks() if strangers else person, project.price_per_label)
        for person in annotators_work(project)
        if person.membership.user_id not in machines
    ]


def payments_csv(project: Project) -> Iterator[str]:
    heading = ["person", "answers", "accepted", "not accepted", "undecided", "price", "amount", "currency"]
    return table_csv(heading, (_payment_row(paid, project.currency) for paid in payments_of(project)))


def _payment_row(paid: Payment, currency: str) -> list[Any]:
    sheet = paid.sheet
    counts = (sheet.answers, sheet.accepted, sheet.refused, sheet.waiting)
    return [sheet.membership.user.username, *counts, paid.price or None, paid.amount, currency]


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
