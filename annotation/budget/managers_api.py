"""REST routes of who manages a population, and of what waits for another of its managers."""

from datetime import datetime
from typing import Any, Literal

from django.db.models.functions import Now
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Schema

from annotation.budget import population_sheets
from annotation.budget.forms import AppointForm
from annotation.budget.populations_api import population_for
from annotation.budget.services import populations
from annotation.models.populations import PopulationRequest, PopulationRequestKind
from annotation.people.identity import person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, checked, row_id
from annotation.work.services.tokens import Scope

router = RoomRouter()


class WishOut(Answer, reads=Reads.MANAGED):
    """What one manager of a population asks for and another grants or refuses."""

    wish: int
    kind: PopulationRequestKind
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
    asked = populations.ask_for_manager(
        population=found, user=wanted["manager"], reason=wanted["reason"], actor=person_of(request)
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
    wish = get_object_or_404(PopulationRequest, pk=row_id(wish_id), population=found)
    decide = (
        populations.approve_population_request if body.decision == "approve" else populations.refuse_population_request
    )
    decide(request_id=wish.pk, population=found, actor=person_of(request))


def _wish(one: PopulationRequest, request: HttpRequest) -> dict[str, Any]:
    is_limit = one.kind == PopulationRequestKind.LIMIT
    return {
        "wish": one.pk,
        "kind": one.kind,
        "manager": None if one.appointee is None else one.appointee.get_username(),
        "epsilon_limit": one.epsilon_limit if is_limit else None,
        "delta_limit": one.delta_limit if is_limit else None,
        "reason": one.reason,
        "asked_by": one.requested_by.get_username(),
        "is_own": one.requested_by_id == request.user.pk,
        "asked_at": one.requested_at,
        "expires_at": one.expires_at,
    }
