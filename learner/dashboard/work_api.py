"""REST routes of the dashboard: work in hand, stopped or started anew."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest

from annotation.budget import charges
from annotation.models import Role
from annotation.people.identity import person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import MostIn, RoomRouter, SaidOut, as_code, project_for
from annotation.work.services.tokens import Scope
from learner.dashboard import tables
from learner.dashboard.rows import ask_to_stop, found_work, retry_price, start_once_more
from learner.errors import NothingWaits
from privacy.accounting.cost import Cost
from privacy.wording import as_message

router = RoomRouter()


class WorkOut(Answer, reads=Reads.MANAGED):
    """A job, round or training at `work/{kind}/{id}`: its progress, and what may be done about it."""

    kind: str
    id: str
    title: str
    state: str
    done: int
    total: int | None
    seconds_left: float | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancelled_by: str
    error: str
    error_as_code: SaidOut | None
    can_cancel: bool
    can_retry: bool
    epsilon: float | None
    delta: float | None


class StartedOut(Answer, reads=Reads.MANAGED):
    """Work that was started, and what it has charged once it reserves; null where that is nothing."""

    kind: str
    id: str
    state: str
    epsilon: float | None
    delta: float | None


class CancelledOut(Answer, reads=Reads.MANAGED):
    """Work that stops at the next point where nothing is half done."""

    kind: str
    id: str
    state: str
    cancelled_by: str


@router.get(
    "projects/{slug:slug}/work", response=list[WorkOut], summary="The newest jobs, rounds and trainings, newest first"
)
def list_work(request: HttpRequest, slug: str) -> Any:
    return [_work(each) for each in tables.work_of(project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER))]


@router.write(
    "projects/{slug:slug}/work/{kind}/{work_id}/cancel",
    response=CancelledOut,
    summary="Have work stop at its next safe point; what it has reserved stays charged",
)
def cancel_work(request: HttpRequest, slug: str, kind: str, work_id: str) -> Any:
    row = found_work(project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER), kind, work_id)
    if not ask_to_stop(row, by=person_of(request)):
        raise NothingWaits(as_message("It has already ended."))
    return {"kind": kind, "id": work_id, "state": row.state, "cancelled_by": row.cancelled_by}


@router.write(
    "projects/{slug:slug}/work/{kind}/{work_id}/retry",
    response={202: StartedOut},
    summary="Start work anew that ended without a result; it reserves for itself what it costs",
)
def retry_work(request: HttpRequest, slug: str, kind: str, work_id: str, body: MostIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    row = found_work(project, kind, work_id)
    price = retry_price(project, row)
    charges.refuse_dearer(price, body.most_epsilon)
    if (started := start_once_more(row, owner=person_of(request))) is None:
        raise NothingWaits(as_message("There is nothing to restart."))
    return {"kind": kind, "id": str(started.pk), "state": started.state} | _price(price)


def _work(found: tables.Work) -> dict[str, Any]:
    row = found.row
    return {
        "kind": found.kind,
        "id": found.key,
        "title": found.title,
        "state": row.state,
        "done": row.progress_done,
        "total": row.progress_total,
        "seconds_left": found.seconds_left,
        "created_at": found.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "cancelled_by": row.cancelled_by,
        "error": str(row.error),
        "error_as_code": as_code(row.error),
        "can_cancel": found.can_cancel,
        "can_retry": found.can_retry,
    } | _price(found.price if found.can_retry else None)


def _price(price: Cost | None) -> dict[str, float | None]:
    return {"epsilon": None, "delta": None} if price is None else {"epsilon": price.epsilon, "delta": price.delta}
