"""REST routes of limits: changing one, requests for a second manager, and limits over several projects."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.db.models.functions import Now
from django.forms import ValidationError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema
from ninja.errors import HttpError
from pydantic import StringConstraints

from annotation.access import may_open
from annotation.budget import population_sheets, presenters, services
from annotation.budget.api import DOCUMENT, AccountScope, CheckpointOut, ConsistencyOut, Old, TreeSize, consistency_of
from annotation.budget.downloads import statement_response
from annotation.budget.forms import AppointForm, person_named
from annotation.errors import InvalidConfiguration, LimitRequestRefused
from annotation.models import Project, Role
from annotation.models.limits import LimitRequest
from annotation.people.identity import note_nothing, person_of
from annotation.people.services import limits
from annotation.work.reads import Answer, Reads
from annotation.work.rest import Page, RoomRouter, checked, page_of, project_for, require_scope, responses, row_id
from annotation.work.services.tokens import Scope
from privacy.accounting.cost import MOST_DELTA_LIMIT, MOST_EPSILON_LIMIT
from privacy.accounting.events import MOST_RECORDS_PER_PERSON
from privacy.ledger.checkpoints import log_of
from privacy.ledger.models import BudgetAccount
from privacy.wording import as_message

router = RoomRouter()
LONGEST_REASON = 300
LimitReason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_REASON)]


class LimitRequestOut(Answer, reads=Reads.MANAGED):
    """A request of one manager that another one grants; limits are null where something else is asked for."""

    request: int
    kind: str = Field(description="A higher limit, a further manager, or one manager deciding alone.")
    account: str | None
    epsilon_limit: float | None
    delta_limit: float | None
    appointee: str | None
    reason: str
    state: str
    requested_by: str
    requested_at: datetime
    expires_at: datetime
    decided_by: str | None
    decided_at: datetime | None


class LimitIn(Schema):
    """Another limit of an account, with a reason that stays in the ledger."""

    account: str = Field("", max_length=200, description="Scope of the account; the project's first one if empty.")
    epsilon_limit: Annotated[float, Field(ge=0, le=MOST_EPSILON_LIMIT)]
    delta_limit: Annotated[float, Field(ge=0, le=MOST_DELTA_LIMIT)]
    reason: LimitReason


class LimitOut(Answer, reads=Reads.MANAGED):
    """Outcome of a change: the limit stands, or waits for another manager under `request`."""

    state: Literal["changed", "waiting"]
    request: int | None


class LimitDecisionIn(Schema):
    """Decision on a request; its author withdraws it by refusing."""

    decision: Literal["approve", "refuse"]


class SecondManagerIn(Schema):
    """Choice of the rule that a higher limit needs a second manager; giving it up takes a reason and another one."""

    needed: bool
    reason: str = Field("", max_length=LONGEST_REASON)


class SecondManagerOut(Answer, reads=Reads.MANAGED):
    """State of the rule that a higher limit needs a second manager, and the request made now to give it up."""

    needed: bool
    request: int | None = None


@router.pages(
    "projects/{slug:slug}/ledger/limits",
    response=list[LimitRequestOut],
    summary="What waits for a second manager and what became of the rest, newest first",
)
def list_limit_requests(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    project = project_for(request, slug, Scope.LEDGER_READ, Role.MANAGER)
    limits.expire_requests()
    found = _requests(project).order_by("-pk")
    return [_request(one) for one in page_of(found, page, request=request, response=response)]


@router.write(
    "projects/{slug:slug}/ledger/limits",
    response=LimitOut,
    summary="Change the limit of an account, or ask another manager for a higher one",
    problems=(402, 409),
)
def change_limit(request: HttpRequest, slug: str, body: LimitIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    accounts = presenters.statement_accounts(project)
    values = body.dict()
    scope = values.pop("account")
    account = get_object_or_404(accounts, scope=scope) if scope else accounts[0]
    asked = limits.change_limit(project=project, account=account, actor=person_of(request), **values)
    return {"state": "changed" if asked is None else "waiting", "request": asked and asked.pk}


@router.write(
    "projects/{slug:slug}/ledger/limits/{int:request_id}",
    response=LimitRequestOut,
    summary="Approve, refuse or withdraw what waits for a second manager",
    problems=(402, 409),
)
def decide_limit(request: HttpRequest, slug: str, request_id: int, body: LimitDecisionIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    get_object_or_404(LimitRequest, pk=request_id, project=project)
    decide = limits.approve_request if body.decision == "approve" else limits.refuse_request
    decide(request_id=request_id, of=project, actor=person_of(request))
    return _request(_requests(project).get(pk=request_id))


@router.get(
    "projects/{slug:slug}/second-manager",
    response=SecondManagerOut,
    summary="Whether a higher limit needs a second manager",
)
def get_second_manager(request: HttpRequest, slug: str) -> Any:
    return {"needed": project_for(request, slug, Scope.LEDGER_READ, Role.MANAGER).second_manager}


@router.write(
    "projects/{slug:slug}/second-manager",
    response=SecondManagerOut,
    summary="Let a higher limit need a second manager, or ask one to give that up",
)
def set_second_manager(request: HttpRequest, slug: str, body: SecondManagerIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    if body.needed == project.second_manager:
        note_nothing(request)
        return {"needed": project.second_manager}
    if body.needed:
        limits.demand_second_manager(project=project)
        return {"needed": True}
    if not (reason := body.reason.strip()):
        raise InvalidConfiguration(as_message("Give a reason; it is kept."))
    asked = limits.ask_to_decide_alone(project=project, actor=person_of(request), reason=reason)
    return {"needed": True, "request": asked.pk}


def _requests(project: Project) -> Any:
    found = LimitRequest.objects.filter(project=project)
    return found.select_related("account", "requested_by", "decided_by", "appointee")


def _request(one: LimitRequest) -> dict[str, Any]:
    return {
        "request": one.pk,
        "kind": one.kind,
        "account": one.account and one.account.scope,
        "epsilon_limit": one.epsilon_limit,
        "delta_limit": one.delta_limit,
        "appointee": one.appointee and one.appointee.get_username(),
        "reason": str(one.reason),
        "state": one.state,
        "requested_by": one.requested_by.get_username(),
        "requested_at": one.requested_at,
        "expires_at": one.expires_at,
        "decided_by": one.decided_by and one.decided_by.get_username(),
        "decided_at": one.decided_at,
    }


Epsilon = Annotated[float, Field(ge=0, le=MOST_EPSILON_LIMIT)]
Delta = Annotated[float, Field(ge=0, le=MOST_DELTA_LIMIT)]


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
    """Outcome of a change: the limit stands, or waits for another manager."""

    state: Literal["changed", "waiting"]


class AppointmentIn(Schema):
    """Somebody to manage the population as well, and why."""

    manager: str = Field(min_length=1, max_length=150)
    reason: str = Field(min_length=1, max_length=300)


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
        raise HttpError(403, "You may not open populations.")
    values = body.dict()
    try:
        second = person_named(values.pop("second_manager"))
    except ValidationError as error:
        raise LimitRequestRefused("No user has this name.") from error
    if body.filter == "zcdp" and body.delta_limit == 0:
        raise LimitRequestRefused("Sums of rho need a delta above 0.")
    opened = services.open_population(owner=person_of(request), second=second, **values)
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
    services.add_project(
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
    response={202: LimitRequestOut},
    summary="Ask another manager to agree to a further one",
)
def ask_for_population_manager(request: HttpRequest, population: str, body: AppointmentIn) -> Any:
    found = population_for(request, population, Scope.PROJECTS_WRITE)
    wanted = checked(AppointForm(body.dict()))
    asked = limits.appoint_budget_manager(
        account=found, user=wanted["manager"], reason=wanted["reason"], actor=person_of(request)
    )
    return _request(asked)


@router.get(
    "populations/{slug:population}/wishes",
    response=list[LimitRequestOut],
    summary="What waits for another manager, newest first",
)
def list_wishes(request: HttpRequest, population: str) -> Any:
    waiting = population_sheets.requests_of(population_for(request, population, Scope.LEDGER_READ))
    return [_request(one) for one in waiting.filter(expires_at__gte=Now())]


@router.write(
    "populations/{slug:population}/wishes/{wish_id}",
    summary="Approve, refuse or withdraw what was asked for",
    problems=(402, 409),
)
def decide_wish(request: HttpRequest, population: str, wish_id: str, body: LimitDecisionIn) -> None:
    found = population_for(request, population, Scope.PROJECTS_WRITE)
    wish = get_object_or_404(limits.requests_of(found), pk=row_id(wish_id))
    decide = limits.approve_request if body.decision == "approve" else limits.refuse_request
    decide(request_id=wish.pk, of=found, actor=person_of(request))


def population_for(request: HttpRequest, slug: str, scope: Scope) -> BudgetAccount:
    require_scope(request, scope)
    return population_sheets.managed_population(request.user, slug)
