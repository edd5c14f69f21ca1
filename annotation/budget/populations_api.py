"""REST routes of populations: opening one, joining it, its limit and its managers."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.core.exceptions import PermissionDenied
from django.db.models.functions import Now
from django.forms import ValidationError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import Field, Schema

from annotation.access import may_open
from annotation.budget import population_sheets
from annotation.budget.api import (
    DOCUMENT,
    AccountScope,
    CheckpointOut,
    ConsistencyOut,
    Old,
    TreeSize,
    consistency_of,
)
from annotation.budget.downloads import statement_response
from annotation.budget.forms import AppointForm, person_named
from annotation.budget.services import populations
from annotation.errors import LimitRequestRefused
from annotation.models import Role
from annotation.models.limits import LimitRequest, RequestKind
from annotation.people.identity import person_of
from annotation.people.services import limits
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, checked, project_for, require_scope, responses, row_id
from annotation.work.services.tokens import Scope
from privacy.accounting.events import MOST_RECORDS_PER_PERSON
from privacy.accounting.units import atto_spendable, nano_spendable
from privacy.ledger.checkpoints import log_of
from privacy.ledger.models import BudgetAccount

router = RoomRouter()
Epsilon = Annotated[float, Field(ge=0, le=100_000)]
Delta = Annotated[float, Field(ge=0, le=0.5)]


class ShareOut(Answer, reads=Reads.MANAGED):
    """An account of a project in a population: its own limit, its quota of the common one, and what it took of that."""

    account: str = Field(alias="title")
    project: str
    records_per_person: int
    epsilon_limit: float
    epsilon_spent: float
    quota: float = Field(description="Its limit for a person with as many records as were declared, in epsilon.")
    taken: float = Field(description="In the currency of the population's filter: epsilon, or rho under zcdp.")
    forecast: str


class PopulationOut(Answer, reads=Reads.POPULATION):
    """People of several projects under one limit."""

    population: str = Field(alias="population.slug")
    name: str = Field(alias="population.plain_label")
    unit: str = Field(alias="guarantee.unit")
    filter: str = Field(alias="guarantee.filter")
    epsilon_limit: float = Field(alias="guarantee.epsilon_limit")
    delta_limit: float = Field(alias="guarantee.delta_limit")
    epsilon_spent: float = Field(alias="guarantee.epsilon_spent")
    delta_spent: float = Field(alias="guarantee.delta_spent")
    waiting: int = Field(description="Wishes that wait for another manager.")
    members: list[ShareOut] = Field(alias="shares")

    @staticmethod
    def resolve_waiting(sheet: population_sheets.PopulationSheet) -> int:
        """Return how many wishes nobody has decided on."""
        return population_sheets.requests_of(sheet.population).count()


class PopulationIn(Schema):
    """A population to open; its second manager is named here, and neither raises the limit alone."""

    name: str = Field(min_length=1, max_length=120)
    unit: Literal["contributor", "record"]
    filter: Literal["pure", "zcdp"]
    epsilon_limit: Epsilon
    delta_limit: Delta
    second_manager: str = Field(max_length=150)


class MemberIn(Schema):
    """The population that a project joins for good, and how many records of one person it holds at most."""

    population: str = Field(max_length=60)
    records_per_person: int | None = Field(None, ge=1, le=MOST_RECORDS_PER_PERSON)


class CommonLimitIn(Schema):
    """Another common limit, with a reason that stays in the ledger."""

    epsilon_limit: Epsilon
    delta_limit: Delta
    reason: str = Field(min_length=1, max_length=300)


class CommonLimitOut(Answer, reads=Reads.MANAGED):
    """Whether the limit stands, or waits for another manager."""

    state: Literal["changed", "waiting"]


class WishOut(Answer, reads=Reads.MANAGED):
    """What one manager of a population asks for and another grants or refuses."""

    wish: int
    kind: RequestKind
    manager: str | None = Field(description="Who is to manage the population, where that is asked for.")
    epsilon_limit: float | None
    delta_limit: float | None
    reason: str
    asked_by: str
    is_own: bool = Field(description="Whether the caller asked for it, and can only take it back.")
    asked_at: datetime
    expires_at: datetime


class AppointmentIn(Schema):
    """Somebody to manage the population as well, and why."""

    manager: str = Field(min_length=1, max_length=150)
    reason: str = Field(min_length=1, max_length=300)


class WishDecisionIn(Schema):
    """Whether a wish is granted; who asked for it takes it back by refusing it."""

    decision: Literal["approve", "refuse"]


@router.get("populations", response=list[PopulationOut], summary="The populations one manages")
def list_populations(request: HttpRequest) -> Any:
    require_scope(request, Scope.LEDGER_READ)
    return [population_sheets.sheet_of(each) for each in population_sheets.populations_of(request.user)]


@router.get("populations/{slug:population}", response=PopulationOut, summary="A population and what its projects took")
def get_population(request: HttpRequest, population: str) -> Any:
    return population_sheets.sheet_of(population_for(request, population, Scope.LEDGER_READ))


@router.get(
    "populations/{slug:population}/ledger/checkpoints",
    response=list[CheckpointOut],
    summary="A signed checkpoint of the common account, for a witness",
    openapi_extra=responses(409),
)
def list_population_checkpoints(request: HttpRequest, population: str) -> Any:
    account = population_for(request, population, Scope.LEDGER_READ)
    return [{"account": account.scope, "checkpoint": log_of(account).checkpoint()}]


@router.get(
    "populations/{slug:population}/ledger/consistency",
    response=ConsistencyOut,
    summary="What shows that the common account's log grew from one checkpoint to another",
    openapi_extra=responses(409),
)
def get_population_consistency(
    request: HttpRequest, population: str, account: AccountScope = "", old: Old = 0, size: TreeSize = 0
) -> Any:
    accounts = BudgetAccount.objects.filter(pk=population_for(request, population, Scope.LEDGER_READ).pk)
    return consistency_of(accounts, account, old=old, size=size)


@router.get(
    "populations/{slug:population}/ledger/statement",
    summary="Every entry of the common account with the audit's verdict, for an auditor",
    openapi_extra=responses(responses=DOCUMENT),
)
def get_population_statement(request: HttpRequest, population: str) -> HttpResponseBase:
    return statement_response(population_for(request, population, Scope.LEDGER_READ))


@router.write("populations", response={201: PopulationOut}, summary="Open a population", problems=(403, 409))
def open_population(request: HttpRequest, body: PopulationIn) -> Any:
    require_scope(request, Scope.PROJECTS_WRITE)
    if not may_open(request):
        raise PermissionDenied("You may not open populations.")
    values = body.dict()
    try:
        second = person_named(values.pop("second_manager"))
    except ValidationError as error:
        raise LimitRequestRefused("Nobody who can log in has this name.") from error
    if body.filter == "zcdp" and body.delta_limit == 0:
        raise LimitRequestRefused("Sums of rho need a delta above 0.")
    opened = populations.open_population(owner=person_of(request), second=second, **values)
    return population_sheets.sheet_of(opened)


@router.write(
    "projects/{slug:slug}/population",
    response={201: PopulationOut},
    summary="Let a project join a population for good, with what it has spent",
    problems=(402, 409),
)
def join_population(request: HttpRequest, slug: str, body: MemberIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    found = population_sheets.managed_population(request.user, body.population)
    populations.add_project(
        population=found, project=project, records_per_person=body.records_per_person, actor=person_of(request)
    )
    return population_sheets.sheet_of(found)


@router.write(
    "populations/{slug:population}/limit",
    response=CommonLimitOut,
    summary="Lower the common limit, or ask another manager for a higher one",
    problems=(402, 409),
)
def change_common_limit(request: HttpRequest, population: str, body: CommonLimitIn) -> Any:
    found = population_for(request, population, Scope.PROJECTS_WRITE)
    asked = limits.change_limit(account=found, actor=person_of(request), **body.dict())
    return {"state": "changed" if asked is None else "waiting"}


@router.get("populations/{slug:population}/managers", response=list[str], summary="Who manages a population, by name")
def list_population_managers(request: HttpRequest, population: str) -> Any:
    found = population_for(request, population, Scope.LEDGER_READ).managers
    return list(found.order_by("user__username").values_list("user__username", flat=True))


@router.write(
    "populations/{slug:population}/managers",
    response={202: WishOut},
    summary="Ask another manager to agree to a further one",
)
def ask_for_population_manager(request: HttpRequest, population: str, body: AppointmentIn) -> Any:
    found = population_for(request, population, Scope.PROJECTS_WRITE)
    wanted = checked(AppointForm(body.dict()))
    asked = limits.appoint_budget_manager(
        account=found, user=wanted["manager"], reason=wanted["reason"], actor=person_of(request)
    )
    return _wish(asked, request)


@router.get(
    "populations/{slug:population}/wishes",
    response=list[WishOut],
    summary="What waits for another manager, newest first",
)
def list_wishes(request: HttpRequest, population: str) -> Any:
    waiting = population_sheets.requests_of(population_for(request, population, Scope.LEDGER_READ))
    return [_wish(one, request) for one in waiting.filter(expires_at__gte=Now())]


@router.write(
    "populations/{slug:population}/wishes/{wish_id}",
    summary="Approve, refuse or withdraw what was asked for",
    problems=(402, 409),
)
def decide_wish(request: HttpRequest, population: str, wish_id: str, body: WishDecisionIn) -> None:
    found = population_for(request, population, Scope.PROJECTS_WRITE)
    wish = get_object_or_404(limits.requests_of(found), pk=row_id(wish_id))
    decide = limits.approve_request if body.decision == "approve" else limits.refuse_request
    decide(request_id=wish.pk, of=found, actor=person_of(request))


def population_for(request: HttpRequest, slug: str, scope: Scope) -> BudgetAccount:
    """Return the population if the token has the scope and its person manages it."""
    require_scope(request, scope)
    return population_sheets.managed_population(request.user, slug)


def _wish(one: LimitRequest, request: HttpRequest) -> dict[str, Any]:
    return {
        "wish": one.pk,
        "kind": one.kind,
        "manager": None if one.appointee is None else one.appointee.get_username(),
        "epsilon_limit": None if one.epsilon_limit_nano is None else nano_spendable(one.epsilon_limit_nano),
        "delta_limit": None if one.delta_limit_atto is None else atto_spendable(one.delta_limit_atto),
        "reason": one.reason,
        "asked_by": one.requested_by.get_username(),
        "is_own": one.requested_by_id == request.user.pk,
        "asked_at": one.requested_at,
        "expires_at": one.expires_at,
    }
