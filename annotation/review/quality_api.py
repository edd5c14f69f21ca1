"""REST routes of how good answers are: hidden checks, people, pauses and payments, and comparing all answers."""

from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema

from annotation import selectors
from annotation.errors import InvalidConfiguration
from annotation.models import Membership, Oracle, Role
from annotation.models.quality import Aggregation, GoldQuery, GoldSource, PauseReason, QualityReport
from annotation.people.identity import person_of
from annotation.questions.images import IMAGE_ANSWER, image_response
from annotation.questions.selectors.answers import answer_name
from annotation.questions.selectors.checks import checks_in_use
from annotation.questions.services import checks as gold
from annotation.review.selectors import quality
from annotation.review.services import agreement as comparing
from annotation.work.reads import Answer, Reads
from annotation.work.rest import JobOut, Page, RoomRouter, page_of, project_for, responses, row_id
from annotation.work.services.tokens import Scope

router = RoomRouter()


class CheckOut(Answer, reads=Reads.MANAGED):
    """A question with a known answer that is shown among the others, and how it was answered."""

    check: int
    question: int
    source: GoldSource
    answer: str
    right: int
    wrong: int
    text: str | None
    fields: dict[str, Any] | None
    has_image: bool = Field(description="Whether it is a picture, which is at `checks/{check}/image`.")
    owner_id: str | None
    metadata: dict[str, str | None] | None


class ChecksIn(Schema):
    """A public upload whose labelled examples become checks."""

    dataset: int = Field(ge=0, le=2**63 - 1)
    most: int = Field(50, ge=1, le=2000)


class ChecksAddedOut(Answer, reads=Reads.MANAGED):
    """How many checks are new."""

    added: int


class AnnotatorOut(Answer, reads=Reads.MANAGED):
    """What became of somebody's answers, and how they did at hidden checks."""

    membership: int | None = Field(description="Null where they annotate here no more.")
    username: str
    answers: int
    accepted: int
    refused: int
    checks: int
    checks_right: int
    low: float = Field(description="Lower end of the 95 % interval of their accuracy at checks.")
    high: float
    agreement: float | None = Field(description="With the model of the last comparison.")
    is_warned: bool
    paused_at: datetime | None
    pause_reason: str


class PaymentOut(Answer, reads=Reads.MANAGED):
    """What somebody is to be paid by accepted answers; amounts are texts, so that nobody rounds them."""

    username: str
    answers: int
    accepted: int
    refused: int
    undecided: int
    price: str | None = Field(description="For one accepted answer; null where the project names none.")
    amount: str | None
    currency: str


class OpinionsIn(Page):
    """Where a page of opinions begins."""

    after: int = Field(0, ge=0, le=2**63 - 1, description="Only questions with a larger number.")


class OpinionOut(Answer, reads=Reads.MANAGED):
    """What the last comparison takes a question for, and how likely that is right by its model."""

    question: int
    owner_id: str | None
    answer: str
    probability: float
    method: Aggregation


class OwnStatisticsOut(Answer, reads=Reads.OWN_WORK):
    """What the caller did and what became of it; checks move in steps of five."""

    answered_today: int
    answered_in_seven_days: int
    answers: int
    accepted: Annotated[int | None, Reads.TRUSTED] = Field(
        description="Null in front of a crowd, like what was refused or is undecided."
    )
    refused: Annotated[int | None, Reads.TRUSTED]
    undecided: Annotated[int | None, Reads.TRUSTED]
    skipped: int
    seconds: float | None = Field(description="For an answer on average in seven days, to a tenth.")
    checks: int
    checks_right: int
    low: float = Field(description="Lower end of the 95 % interval of the accuracy at checks.")
    high: float
    is_warned: bool
    is_paused: bool
    pause_reason: PauseReason | None
    earned: str | None = Field(description="By accepted answers, as a text; null where the project names no price.")
    currency: str


class AgreementOut(Answer, reads=Reads.MANAGED):
    """The last comparison of all answers, and the work that makes it."""

    method: str
    answers: int
    questions: int
    alpha: float | None = Field(description="How far answers agree, by the coefficient of the quality page.")
    made_at: datetime | None
    job: JobOut


@router.pages(
    "projects/{slug:slug}/checks",
    response=list[CheckOut],
    summary="Hidden checks in use, those answered wrongly most often first",
)
def list_checks(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    return [_check(one) for one in page_of(checks_in_use(project), page, request=request, response=response)]


@router.write(
    "projects/{slug:slug}/checks",
    response={201: ChecksAddedOut},
    summary="Make hidden checks from labelled public examples",
)
def add_checks(request: HttpRequest, slug: str, body: ChecksIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    dataset = project.datasets.filter(pk=body.dataset).first()
    if dataset is None:
        raise InvalidConfiguration("Choose a public upload with labels.")
    added = gold.add_public_checks(project=project, dataset=dataset, owner=person_of(request), most=body.most)
    return {"added": added}


@router.remove(
    "projects/{slug:slug}/checks/{check_id}",
    summary="Show a check to nobody any more; answers to it count against nobody",
)
def retire_check(request: HttpRequest, slug: str, check_id: str) -> None:
    gold.retire_check(check=_found_check(request, slug, check_id, Scope.PROJECTS_WRITE))


@router.get(
    "projects/{slug:slug}/checks/{check_id}/image",
    summary="The picture that a hidden check is about",
    openapi_extra=responses(responses={200: IMAGE_ANSWER}),
)
def get_check_image(request: HttpRequest, slug: str, check_id: str) -> HttpResponse:
    return image_response(_found_check(request, slug, check_id, Scope.LABELS_READ).query.record)


@router.get(
    "projects/{slug:slug}/annotators", response=list[AnnotatorOut], summary="Everybody's answers and their checks"
)
def list_annotators(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    return [
        {
            "membership": sheet.membership.pk,
            "username": sheet.membership.user.get_username(),
            "answers": sheet.answers,
            "accepted": sheet.accepted,
            "refused": sheet.refused,
            "checks": sheet.checks.answered,
            "checks_right": sheet.checks.right,
            "low": sheet.checks.low,
            "high": sheet.checks.high,
            "agreement": sheet.skill,
            "is_warned": gold.is_warned(project, sheet.checks),
            "paused_at": sheet.membership.paused_at,
            "pause_reason": sheet.membership.pause_reason,
        }
        for sheet in quality.annotators_work(project)
    ]


@router.pages(
    "projects/{slug:slug}/payments", response=list[PaymentOut], summary="Who is to be paid what, by accepted answers"
)
def list_payments(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    return [
        {
            "username": paid.sheet.membership.user.get_username(),
            "answers": paid.sheet.answers,
            "accepted": paid.sheet.accepted,
            "refused": paid.sheet.refused,
            "undecided": paid.sheet.waiting,
            "price": _money(paid.price),
            "amount": _money(paid.amount),
            "currency": project.currency,
        }
        for paid in page_of(quality.payments_of(project), page, request=request, response=response)
    ]


@router.get(
    "projects/{slug:slug}/statistics",
    response=OwnStatisticsOut,
    summary="What the caller answered, how they did at checks, and what they earned",
)
def get_own_statistics(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    own = quality.own_statistics(project=project, user=person_of(request))
    sheet, checks, member = own.sheet, own.sheet.checks, own.sheet.membership
    known = project.oracle == Oracle.TRUSTED
    return {
        "answered_today": own.today,
        "answered_in_seven_days": own.week,
        "answers": sheet.answers,
        "accepted": sheet.accepted if known else None,
        "refused": sheet.refused if known else None,
        "undecided": sheet.waiting if known else None,
        "skipped": own.skipped,
        "seconds": None if own.seconds is None else round(own.seconds, 1),
        "checks": checks.answered,
        "checks_right": checks.right,
        "low": checks.low,
        "high": checks.high,
        "is_warned": gold.is_warned(project, checks),
        "is_paused": member.paused_at is not None,
        "pause_reason": member.pause_reason or None,
        "earned": _money(own.earned),
        "currency": project.currency,
    }


@router.write(
    "projects/{slug:slug}/members/{membership_id}/pause",
    summary="Ask an annotator nothing further; what they hold they may still answer",
)
def pause_member(request: HttpRequest, slug: str, membership_id: str) -> None:
    membership = _annotator(request, slug, membership_id, Scope.PROJECTS_WRITE)
    gold.pause_member(membership=membership, reason=PauseReason.MANAGER)


@router.remove(
    "projects/{slug:slug}/members/{membership_id}/pause",
    summary="Let an annotator go on; checks from before no longer count against them",
)
def resume_member(request: HttpRequest, slug: str, membership_id: str) -> None:
    gold.resume_member(membership=_annotator(request, slug, membership_id, Scope.PROJECTS_WRITE))


@router.get("projects/{slug:slug}/agreement", response=AgreementOut, summary="The last comparison of all answers")
def get_agreement(request: HttpRequest, slug: str) -> Any:
    return get_object_or_404(
        QualityReport.objects.select_related("job"), project=project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    )


@router.write(
    "projects/{slug:slug}/agreement",
    response={202: AgreementOut},
    summary="Have a worker compare all answers as they stand",
)
def compare_answers(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    return comparing.start_report(project=project, owner=person_of(request))


@router.pages(
    "projects/{slug:slug}/opinions",
    response=list[OpinionOut],
    summary="What the last comparison takes each question for",
)
def list_opinions(request: HttpRequest, response: HttpResponse, slug: str, page: Query[OpinionsIn]) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    found = quality.opinions_of(project).filter(query__gt=page.after)
    return [
        {
            "question": opinion.query_id,
            "owner_id": opinion.owner_id,
            "answer": answer_name(project, opinion.choice),
            "probability": opinion.probability,
            "method": opinion.report.method,
        }
        for opinion in page_of(found, page, request=request, response=response)
    ]


def _found_check(request: HttpRequest, slug: str, check_id: str, scope: Scope) -> GoldQuery:
    checks = GoldQuery.objects.filter(query__project=project_for(request, slug, scope, Role.MANAGER))
    return get_object_or_404(checks.select_related("query__record__dataset"), pk=row_id(check_id))


def _annotator(request: HttpRequest, slug: str, membership_id: str, scope: Scope) -> Membership:
    annotators = Membership.objects.filter(project=project_for(request, slug, scope, Role.MANAGER), role=Role.ANNOTATOR)
    return get_object_or_404(annotators, pk=row_id(membership_id))


def _money(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)


def _check(one: Any) -> dict[str, Any]:
    project = one.query.project
    shown = selectors.shown_of(project, one.query, image_url="image")
    return {
        "check": one.pk,
        "question": one.query_id,
        "source": one.source,
        "answer": answer_name(project, one.choice),
        "right": one.answered - one.wrong,
        "wrong": one.wrong,
        "has_image": bool(shown.image_url),
        **asdict(shown),
    }
