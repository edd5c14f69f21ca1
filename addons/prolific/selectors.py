"""Studies as a manager sees them: costs, submissions and open decisions."""

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Sum

from addons.prolific.costs import StudyCost, cost_of, hourly_cents, money, together
from addons.prolific.models import (
    BonusLine,
    BonusState,
    CrowdStudy,
    CrowdSubmission,
    CrowdVerdict,
    StudyState,
    StudyStep,
)
from annotation.models import Project
from annotation.models.joining import CrowdParticipant
from annotation.review.selectors import PersonSheet, annotators_work

OVER = (StudyState.COMPLETED, StudyState.DISCARDED)
# What may come next, by where a study stands.
STEPS = {
    StudyState.WAITING: (StudyStep.DISCARD,),
    StudyState.UNPUBLISHED: (StudyStep.PUBLISH, StudyStep.DISCARD),
    StudyState.ACTIVE: (StudyStep.PAUSE, StudyStep.STOP),
    StudyState.PAUSED: (StudyStep.START, StudyStep.STOP),
}
REVIEWED = "AWAITING REVIEW"


@dataclass(frozen=True, slots=True)
class StudySheet:
    study: CrowdStudy
    cost: StudyCost
    steps: tuple[StudyStep, ...]

    @property
    def per_place(self) -> Decimal:
        return money(self.study.reward_cents)

    @property
    def per_hour(self) -> Decimal:
        return money(hourly_cents(self.study.reward_cents, self.study.minutes))

    @property
    def promised(self) -> Decimal:
        return money(self.cost.promised)

    @property
    def so_far(self) -> Decimal:
        return money(self.cost.so_far)

    @property
    def is_over(self) -> bool:
        return self.study.state in OVER


@dataclass(frozen=True, slots=True)
class MoneySheet:
    promised: Decimal
    so_far: Decimal
    limit: Decimal | None

    @property
    def left(self) -> Decimal | None:
        return None if self.limit is None else self.limit - self.promised


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    submission: CrowdSubmission
    participant: CrowdParticipant | None
    person: PersonSheet | None
    verdicts: tuple[CrowdVerdict, ...]

    @property
    def is_complete(self) -> bool:
        return self.participant is not None and self.participant.completed_at is not None

    @property
    def is_paused(self) -> bool:
        return self.person is not None and self.person.membership.paused_at is not None

    @property
    def bonus(self) -> Decimal:
        return money(self.submission.bonus_cents)

    @property
    def is_decided(self) -> bool:
        return any(each.kind != "RETURN" and each.state != "refused" for each in self.verdicts)

    @property
    def may_be_approved(self) -> bool:
        return self.is_open and self.is_complete and not self.is_paused

    @property
    def is_open(self) -> bool:
        return self.submission.state == REVIEWED and not self.is_decided


def studies_of(project: Project) -> list[StudySheet]:
    studies = list(CrowdStudy.objects.filter(project=project).select_related("link").order_by("-pk"))
    lines = BonusLine.objects.filter(sheet__study__in=studies).exclude(sheet__state=BonusState.REFUSED)
    bonuses = dict(lines.order_by().values_list("sheet__study").annotate(cents=Sum("amount_cents")))
    return [_sheet(study, bonuses.get(study.pk, 0)) for study in studies]


def sheet_of_study(study: CrowdStudy) -> StudySheet:
    lines = BonusLine.objects.filter(sheet__study=study).exclude(sheet__state=BonusState.REFUSED)
    return _sheet(study, lines.aggregate(cents=Sum("amount_cents", default=0))["cents"])


def _sheet(study: CrowdStudy, bonus_cents: int) -> StudySheet:
    cost = cost_of(
        reward_cents=study.reward_cents,
        fee_percent=study.fee_percent,
        places=study.places,
        approved=study.approved,
        is_over=study.state in OVER,
        bonus_cents=bonus_cents + study.forgotten_bonus_cents,
    )
    return StudySheet(study, cost, () if study.wanted else STEPS.get(StudyState(study.state), ()))


def money_of(project: Project, sheets: list[StudySheet] | None = None) -> MoneySheet:
    cost = together(sheet.cost for sheet in (studies_of(project) if sheets is None else sheets))
    return MoneySheet(money(cost.promised), money(cost.so_far), project.money_limit)


def rows_of(study: CrowdStudy) -> list[SubmissionRow]:
    submissions = list(study.submissions.order_by("pk").prefetch_related("verdicts"))
    came = CrowdParticipant.objects.filter(link=study.link_id).select_related("user")
    by_hash = {bytes(each.pid_digest): each for each in came}
    people = {sheet.membership.user_id: sheet for sheet in annotators_work(study.project)} if came else {}
    rows = []
    for submission in submissions:
        participant = by_hash.get(bytes(submission.pid_digest))
        person = None if participant is None else people.get(participant.user_id)
        verdicts = tuple(sorted(submission.verdicts.all(), key=lambda verdict: verdict.pk))
        rows.append(SubmissionRow(submission, participant, person, verdicts))
    return rows
