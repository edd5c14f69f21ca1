"""REST routes of studies on a crowd platform: opened, moved on, decided on and paid as their pages do it."""

from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Schema

from addons.prolific import selectors
from addons.prolific.costs import in_cents
from addons.prolific.errors import StudyRefused
from addons.prolific.models import CrowdStudy, PlatformAccount, StudyStep, VerdictKind
from addons.prolific.services import accounts, bonuses, studies
from addons.prolific.services.accounts import LETTERS_OF_TOKENS
from addons.prolific.services.bonuses import MOST_LINES
from addons.prolific.services.studies import MOST_DAYS, MOST_MESSAGE, MOST_MINUTES, MOST_PAY, MOST_PLACES
from annotation.models import Project, Role
from annotation.people.identity import person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, SaidOut, as_code, project_for, row_id
from annotation.work.services.tokens import Scope
from privacy.wording import in_english

router = RoomRouter()
# The largest number a row has.
MOST_ID = 2**63 - 1
Money = Annotated[
    Decimal, Field(gt=0, le=MOST_PAY, decimal_places=2, description="In the project's currency, as a text or a number.")
]


class StudyOut(Answer, reads=Reads.MANAGED):
    """A study with its money, in the project's currency; amounts are texts, so that nobody rounds them."""

    study: int
    name: str
    state: str = Field(description="In the platform's words; empty until it knows of it.")
    wanted: str = Field(description="What the platform is being asked for; empty where nothing is.")
    places: int
    places_taken: int
    approved: int
    minutes: int
    pay_per_place: str
    pay_per_hour: str
    cost_so_far: str = Field(description="With the fee.")
    promised_at_most: str = Field(description="With the fee.")
    fault: str
    fault_as_code: SaidOut | None
    followed_at: datetime | None


@router.get("projects/{slug:slug}/studies", response=list[StudyOut], summary="The project's studies on Prolific")
def list_studies(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    return [_study(sheet) for sheet in selectors.studies_of(project)]


class PlatformOut(Answer, reads=Reads.MANAGED):
    """The account on Prolific that studies are paid from; its token is shown to nobody."""

    is_connected: bool
    fee_percent: str | None = Field(description="What Prolific adds to each pay and bonus; null without a token.")
    currency: str = Field(description="As Prolific says it; empty until it did.")
    fault: str
    fault_as_code: SaidOut | None


class PlatformIn(Schema):
    """A token that takes the place of an earlier one."""

    token: str = Field(
        pattern=LETTERS_OF_TOKENS,
        repr=False,
        json_schema_extra={"format": "password", "writeOnly": True},
        description="Made on Prolific. It is kept sealed and never given back.",
    )
    fee_percent: Decimal = Field(
        ge=0, le=100, decimal_places=2, description="What Prolific adds to each pay and bonus, with taxes."
    )


# Before the routes of one study, whose address would take "account" for its number.
@router.get(
    "projects/{slug:slug}/studies/account", response=PlatformOut, summary="The account that studies are paid from"
)
def get_platform(request: HttpRequest, slug: str) -> Any:
    return _platform(project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER))


@router.write(
    "projects/{slug:slug}/studies/account",
    response=PlatformOut,
    summary="Store the token that studies are opened with, in the place of an earlier one",
)
def connect_platform(request: HttpRequest, slug: str, body: PlatformIn) -> Any:
    project = project_for(request, slug, Scope.STUDIES_WRITE, Role.MANAGER)
    accounts.connect_account(project=project, token=body.token, fee_percent=body.fee_percent, actor=person_of(request))
    return _platform(project)


@router.remove("projects/{slug:slug}/studies/account", summary="Forget the token", problems=())
def disconnect_platform(request: HttpRequest, slug: str) -> None:
    accounts.disconnect_account(project=project_for(request, slug, Scope.STUDIES_WRITE, Role.MANAGER))


class StudyChange(StrEnum):
    PUBLISH = "publish"
    PAUSE = "pause"
    START = "start"
    STOP = "stop"
    DISCARD = "discard"
    APPROVE = "approve"
    LOOK = "look"
    FORGET = "forget"


class StudyIn(Schema):
    """A new study."""

    name: str = Field(min_length=1, max_length=120, description="Participants see it on Prolific.")
    description: str = Field(min_length=1, max_length=3000, description="Participants read it before they begin.")
    places: int = Field(ge=1, le=MOST_PLACES)
    pay_per_place: Money
    minutes: int = Field(ge=1, le=MOST_MINUTES, description="How long it takes, as participants are told.")
    answers_wanted: int = Field(20, ge=1, le=MOST_PLACES, description="Until the completion code is shown.")
    days: int = Field(14, ge=1, le=MOST_DAYS, description="Until it ends.")
    signed: bool = Field(False, description="Only who Prolific signs for gets in; the study's address is secured.")


class ParticipationOut(Answer, reads=Reads.MANAGED):
    """Somebody's place in a study, beside what the site knows of them; never who they are on the platform."""

    participation: int
    participant: str | None = Field(description="The name they have here; null before they came.")
    state: str = Field(description="In the platform's words.")
    is_complete: bool
    is_paused: bool
    waits_for_decision: bool
    bonus: str


class BonusSheetOut(Answer, reads=Reads.MANAGED):
    """Bonuses given together."""

    key: UUID
    state: str
    fault: str


class StudyDetailOut(StudyOut):
    """A study with what may be done next, who came and which bonuses were given."""

    changes: list[str]
    participations: list[ParticipationOut]
    bonuses: list[BonusSheetOut]


class StudyChangeIn(Schema):
    """One change of a study."""

    change: StudyChange


class ParticipationDecision(StrEnum):
    """Decision on one participation; complete ones are approved together."""

    RETURN = "return"
    REJECT = "reject"


class ParticipationDecisionIn(Schema):
    """A decision about one participation, and what the participant is told."""

    participation: int = Field(ge=1, le=MOST_ID)
    decision: ParticipationDecision
    category: str = Field("", max_length=60, description="Only to reject: one of Prolific's reasons.")
    message: str = Field(min_length=1, max_length=MOST_MESSAGE, description="To reject, at least 100 letters.")


class BonusIn(Schema):
    """Bonus of one participant."""

    participant: str = Field(min_length=1, max_length=150)
    amount: Money


class BonusesIn(Schema):
    """Bonuses that are given once under their key, however often they are sent."""

    key: UUID
    bonuses: list[BonusIn] = Field(min_length=1, max_length=MOST_LINES)


class SettledIn(Schema):
    """Outcome of bonuses whose answer was lost, as the platform itself shows it."""

    came: bool


@router.write(
    "projects/{slug:slug}/studies",
    response={201: StudyOut},
    summary="Open a study's draft on Prolific, within the project's limit in money",
)
def open_study(request: HttpRequest, slug: str, body: StudyIn) -> Any:
    project = project_for(request, slug, Scope.STUDIES_WRITE, Role.MANAGER)
    study = studies.open_study(
        project=project,
        owner=person_of(request),
        name=body.name,
        description=body.description,
        places=body.places,
        reward_cents=in_cents(body.pay_per_place),
        minutes=body.minutes,
        answers_wanted=body.answers_wanted,
        lifetime=timedelta(days=body.days),
        signed=body.signed,
    )
    return _study(selectors.sheet_of_study(study))


@router.get("projects/{slug:slug}/studies/{study_id}", response=StudyDetailOut, summary="One study and who came")
def get_study(request: HttpRequest, slug: str, study_id: str) -> Any:
    return _detail(_found(request, slug, study_id, Scope.PROJECTS_READ))


@router.write(
    "projects/{slug:slug}/studies/{study_id}/changes",
    response=StudyDetailOut,
    summary="Move a study on, approve who is complete, look now, or forget who came",
)
def change_study(request: HttpRequest, slug: str, study_id: str, body: StudyChangeIn) -> Any:
    study = _found(request, slug, study_id, Scope.STUDIES_WRITE)
    if body.change == StudyChange.APPROVE:
        studies.approve_complete(study=study, actor=person_of(request))
    elif body.change == StudyChange.LOOK:
        studies.follow_soon(study)
    elif body.change == StudyChange.FORGET:
        studies.forget_people(study=study)
    else:
        studies.want_step(study=study, step=StudyStep(body.change.upper()))
    return _detail(_found(request, slug, study_id, Scope.STUDIES_WRITE))


@router.write(
    "projects/{slug:slug}/studies/{study_id}/decisions", summary="Reject a participation, or ask for its return"
)
def decide_participation(request: HttpRequest, slug: str, study_id: str, body: ParticipationDecisionIn) -> None:
    submission = _found(request, slug, study_id, Scope.STUDIES_WRITE).submissions.filter(pk=body.participation).first()
    if submission is None:
        raise StudyRefused("This participation has already been decided.", field="participation")
    studies.judge(
        submission=submission,
        kind=VerdictKind(body.decision.upper()),
        message=body.message,
        category=body.category,
        actor=person_of(request),
    )


@router.write("projects/{slug:slug}/studies/{study_id}/bonuses", summary="Give bonuses, once under their key")
def give_bonuses(request: HttpRequest, slug: str, study_id: str, body: BonusesIn) -> None:
    study = _found(request, slug, study_id, Scope.STUDIES_WRITE)
    amounts = {each.participant: in_cents(each.amount) for each in body.bonuses}
    if len(amounts) < len(body.bonuses):
        raise StudyRefused(in_english("A participant is listed twice."), field="bonuses")
    bonuses.give_bonuses(study=study, key=body.key, cents_by_name=amounts, actor=person_of(request))


@router.write("projects/{slug:slug}/studies/{study_id}/bonuses/settle", summary="Say whether unclear bonuses came")
def settle_bonuses(request: HttpRequest, slug: str, study_id: str, body: SettledIn) -> None:
    bonuses.settle_unclear(study=_found(request, slug, study_id, Scope.STUDIES_WRITE), came=body.came)


def _platform(project: Project) -> dict[str, Any]:
    account = PlatformAccount.objects.filter(project=project).first()
    if account is None:
        return {"is_connected": False, "fee_percent": None, "currency": "", "fault": "", "fault_as_code": None}
    return {
        "is_connected": True,
        "fee_percent": str(account.fee_percent),
        "currency": account.currency,
        "fault": str(account.fault),
        "fault_as_code": as_code(account.fault),
    }


def _found(request: HttpRequest, slug: str, study_id: str, scope: Scope) -> CrowdStudy:
    project = project_for(request, slug, scope, Role.MANAGER)
    chosen = CrowdStudy.objects.select_related("project", "link")
    return get_object_or_404(chosen, pk=row_id(study_id), project=project)


def _detail(study: CrowdStudy) -> dict[str, Any]:
    sheet = selectors.sheet_of_study(study)
    rows = selectors.rows_of(study)
    steps = [step.lower() for step in sheet.steps]
    if any(row.may_be_approved for row in rows):
        steps.append(StudyChange.APPROVE)
    steps.append(StudyChange.FORGET if sheet.is_over else StudyChange.LOOK)
    return _study(sheet) | {
        "changes": steps,
        "participations": [_participation(row) for row in rows],
        "bonuses": [
            {"key": each.pk, "state": each.state, "fault": str(each.fault)}
            for each in study.bonus_sheets.order_by("created_at")
        ],
    }


def _participation(row: selectors.SubmissionRow) -> dict[str, Any]:
    return {
        "participation": row.submission.pk,
        "participant": None if row.participant is None else row.participant.user.username,
        "state": row.submission.state,
        "is_complete": row.is_complete,
        "is_paused": row.is_paused,
        "waits_for_decision": row.is_open,
        "bonus": str(row.bonus),
    }


def _study(sheet: selectors.StudySheet) -> dict[str, Any]:
    study = sheet.study
    return {
        "study": study.pk,
        "name": study.name,
        "state": study.state,
        "wanted": study.wanted,
        "places": study.places,
        "places_taken": study.places_taken,
        "approved": study.approved,
        "minutes": study.minutes,
        "pay_per_place": str(sheet.per_place),
        "pay_per_hour": str(sheet.per_hour),
        "cost_so_far": str(sheet.so_far),
        "promised_at_most": str(sheet.promised),
        "fault": str(study.fault),
        "fault_as_code": as_code(study.fault),
        "followed_at": study.followed_at,
    }
