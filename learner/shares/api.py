"""REST routes of class shares: what was released, what can be asked for at which price, and asking."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Schema

from annotation.models import Role
from annotation.people.identity import person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import Moment, Page, RoomRouter, page_of, project_for
from annotation.work.services.tokens import Scope
from learner.estimators.abstaining import Threshold
from learner.models import Grouping, SharesReport
from learner.releases.api import readable_project
from learner.releases.selectors import thresholds_of
from learner.shares import selectors, services

router = RoomRouter()


class ClassShareOut(Answer, reads=Reads.RELEASED):
    """A class in a group, in percent with a 95 % interval; an empty name stands for records without a label."""

    group: str
    name: str
    percent: float = Field(validation_alias="value")
    low: float
    high: float
    labels_alone: float = Field(validation_alias="labels")
    labels_low: float
    labels_high: float
    model_alone: float | None = Field(validation_alias="model")
    moved: bool = Field(description="More than three standard errors away from the group before.")


class ThresholdOut(Answer, reads=Reads.RELEASED):
    """Least probability of a class that a model names, and the part of the pool it then answers."""

    precision: float = Field(description="Share of right answers, kept in 95 % of all counts.")
    threshold: float | None
    answered: float


class SharesOut(Answer, reads=Reads.SETTINGS):
    """Shares that were asked for; `shares` is empty until they are counted."""

    number: int
    block: int = Field(validation_alias="block.block")
    version: int | None = Field(None, validation_alias="release.version")
    grouping: str
    column: str
    state: str
    asked_at: Moment = Field(validation_alias="created_at")
    shares: list[ClassShareOut]
    thresholds: list[ThresholdOut]

    @staticmethod
    def resolve_shares(report: SharesReport) -> list[selectors.ShareRow]:
        return selectors.share_rows(report)

    @staticmethod
    def resolve_thresholds(report: SharesReport) -> list[Threshold]:
        return thresholds_of(report)


class SharesOfferOut(Answer, reads=Reads.SETTINGS):
    """Shares that can be asked for, their price, and the half width in points that public sizes let expect."""

    block: int = Field(validation_alias="block.block")
    grouping: str
    column: str
    groups: list[str]
    with_model: bool
    epsilon: float
    labels: int = Field(description="Expected number of sampled records.")
    width: float | None = Field(description="None where no shares are counted.")
    width_alone: float | None
    can_pay: bool

    @staticmethod
    def resolve_groups(offer: selectors.Offer) -> list[str]:
        return [group.name for group in offer.groups]

    @staticmethod
    def resolve_with_model(offer: selectors.Offer) -> bool:
        return offer.pool is not None

    @staticmethod
    def resolve_width(offer: selectors.Offer) -> float | None:
        return None if offer.grouping == Grouping.CONFIDENCE else round(offer.points, 2)

    @staticmethod
    def resolve_width_alone(offer: selectors.Offer) -> float | None:
        return None if offer.grouping == Grouping.CONFIDENCE else round(offer.points_alone, 2)


class SharesIn(Schema):
    """A block whose labels are read once more, and how its records are grouped."""

    block: int = Field(ge=1, le=10**4)
    grouping: Grouping = Grouping.WHOLE
    column: str = Field("", max_length=200, description="Declared column, where `grouping` is `column`.")


@router.pages("projects/{slug:slug}/shares", response=list[SharesOut], summary="Shares of classes, newest first")
def list_shares(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    found = selectors.reports_of(readable_project(request, slug))
    return page_of(found, page, request=request, response=response)


@router.get(
    "projects/{slug:slug}/shares/offers",
    response=list[SharesOfferOut],
    summary="Shares that can be asked for, with their price",
)
def list_share_offers(request: HttpRequest, slug: str, grouping: Grouping = Grouping.WHOLE, column: str = "") -> Any:
    return selectors.offers(readable_project(request, slug), grouping=grouping, column=column)


@router.write(
    "projects/{slug:slug}/shares", response={202: SharesOut}, summary="Ask for shares of classes at their price"
)
def ask_shares(request: HttpRequest, slug: str, body: SharesIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    return services.ask_shares(
        project=project, block=body.block, grouping=body.grouping, column=body.column, actor=person_of(request)
    )
