"""REST routes of limits: changing one, what waits for a second manager, deciding on it, and asking for one at all."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema
from pydantic import StringConstraints

from annotation.budget import presenters
from annotation.errors import InvalidConfiguration
from annotation.models import Project, Role
from annotation.models.limits import LimitRequest
from annotation.people.identity import note_nothing, person_of
from annotation.people.services import limits
from annotation.work.reads import Answer, Reads
from annotation.work.rest import Page, RoomRouter, page_of, project_for
from annotation.work.services.tokens import Scope
from privacy.accounting.units import atto_spendable, nano_spendable
from privacy.wording import as_message

router = RoomRouter()
LONGEST_REASON = 300
LimitReason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_REASON)]


class LimitRequestOut(Answer, reads=Reads.MANAGED):
    """What one manager asked for and another grants; limits are null where something else is asked for."""

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
    epsilon_limit: Annotated[float, Field(ge=0, le=100_000)]
    delta_limit: Annotated[float, Field(ge=0, le=1)]
    reason: LimitReason


class LimitOut(Answer, reads=Reads.MANAGED):
    """Whether the limit stands, or waits for another manager under `request`."""

    state: Literal["changed", "waiting"]
    request: int | None


class LimitDecisionIn(Schema):
    """What is decided on a request; who asked for it takes it back by refusing."""

    decision: Literal["approve", "refuse"]


class SecondManagerIn(Schema):
    """Whether a higher limit shall need a second manager; giving that up takes a reason, and another manager."""

    needed: bool
    reason: str = Field("", max_length=LONGEST_REASON)


class SecondManagerOut(Answer, reads=Reads.MANAGED):
    """Whether a higher limit needs a second manager, and the request to give that up that was made now."""

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
        raise InvalidConfiguration(as_message("Say why."))
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
        "epsilon_limit": None if one.epsilon_limit_nano is None else nano_spendable(one.epsilon_limit_nano),
        "delta_limit": None if one.delta_limit_atto is None else atto_spendable(one.delta_limit_atto),
        "appointee": one.appointee and one.appointee.get_username(),
        "reason": str(one.reason),
        "state": one.state,
        "requested_by": one.requested_by.get_username(),
        "requested_at": one.requested_at,
        "expires_at": one.expires_at,
        "decided_by": one.decided_by and one.decided_by.get_username(),
        "decided_at": one.decided_at,
    }
