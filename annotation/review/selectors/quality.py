"""Annotators' statistics, hidden checks and agreement."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
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
from annotation.models.quality import MachineAnnotator, Opinion, QualityReport
from annotation.questions.selectors.answers import answer_name, counts_equal
from annotation.questions.selectors.checks import Checks, answered_checks, answered_rightly, counted_checks, judged_from
from privacy.choices import Kind


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
    compared, agreeing = _compared_with_people(project, machine.user_id)
    is_on = bool(project.settings.get(Kind.MACHINE.key))
    return MachineSheet(
        machine=machine,
        endpoint=project.settings.get("machine_endpoint", "") if is_on else "",
        most_requests=project.settings.get("machine_requests") if is_on else None,
        compared=compared,
        agreeing=agreeing,
    )


def _compared_with_people(project: Project, machine_id: int) -> tuple[int, int]:
    given = Label.objects.filter(query__project=project, superseded_at=None, choice__isnull=False)
    mine = given.filter(annotator=machine_id).exclude(query__state=QueryState.GOLD)
    votes: dict[int, Counter[int]] = {}
    people = given.filter(query__in=mine.values("query")).exclude(annotator=machine_id)
    for query_id, choice in people.values_list("query", "choice").iterator():
        votes.setdefault(query_id, Counter())[choice or 0] += 1
    leading = {query_id: found.most_common(2) for query_id, found in votes.items()}
    clear = {key: best[0][0] for key, best in leading.items() if len(best) == 1 or best[0][1] > best[1][1]}
    own = dict(mine.values_list("query", "choice"))
    return len(clear), sum(own[query_id] == choice for query_id, choice in clear.items())


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
    machine = MachineAnnotator.objects.filter(project=project)
    return (
        Label.objects.filter(query__project=project).aggregate(last=Max("pk"), gone=Count("superseded_at")),
        Consensus.objects.filter(project=project).aggregate(last=Max("pk"), votes=Sum("votes")),
        list(people.values_list("user", "paused_at")),
        list(states.annotate(n=Count("pk"))),
        list(machine.values_list("requests", "unusable", "tokens", "faults")),
        list(QualityReport.objects.filter(project=project).values_list("made_at", "job__state", "job__progress_done")),
    )


def payments_of(project: Project) -> list[PersonSheet]:
    """Return who earned what; in front of a crowd by checks alone. A language model is not paid."""
    machines = set(MachineAnnotator.objects.filter(project=project).values_list("user_id", flat=True))
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
