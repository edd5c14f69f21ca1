"""REST routes of queues and stuck work of all projects, for whoever runs the site: no text, no label, no annotator."""

from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.utils.translation import override

from annotation.people.identity import person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, SaidOut, as_code, require_scope
from annotation.work.services.tokens import Scope
from dpal_site.operations import long_work
from dpal_site.operations.pages import standing
from learner.errors import NothingWaits
from privacy.wording import as_message, in_english

router = RoomRouter()


class QueueOut(Answer, reads=Reads.OPERATED):
    """A queue: how much waits in it, and when a worker of it was last heard of."""

    name: str
    waiting: int | None
    heard: datetime | None
    silent: bool


class LeasesOut(Answer, reads=Reads.OPERATED):
    """Answers a project wants, questions in front of somebody, and the time of the oldest."""

    project: str
    wanted: int
    held: int
    oldest: datetime | None


class LongWorkOut(Answer, reads=Reads.OPERATED):
    """A job, a round or a training of any project; its address is `operations/work/{kind}/{id}`."""

    kind: str
    id: str
    name: str
    project: str
    state: str
    attempt: int
    since: datetime
    trouble: str
    error: str
    error_as_code: SaidOut | None
    may_be_sent: bool


class StandingOut(Answer, reads=Reads.OPERATED):
    """State of the whole site's work."""

    queues: list[QueueOut]
    broker_away: bool
    scanner_away: bool
    leases: list[LeasesOut]
    unfinished: list[LongWorkOut]
    failed: list[LongWorkOut]


class ActedOut(Answer, reads=Reads.OPERATED):
    """Work that something was done with."""

    kind: str
    id: str


@router.get("operations/work", response=StandingOut, summary="Queues, and the work that waits, runs or failed lately")
def get_operations(request: HttpRequest) -> Any:
    _staff(request, Scope.OPERATIONS_READ)
    with override("en"):
        found = standing()
        return found | {name: [_work(one) for one in found[name]] for name in ("unfinished", "failed")}


@router.write(
    "operations/work/{kind}/{work_id}/send",
    response={202: ActedOut},
    summary="Hand work that nobody is at to a worker again",
)
def send_work_again(request: HttpRequest, kind: str, work_id: str) -> Any:
    _staff(request, Scope.OPERATIONS_WRITE)
    return _acted(kind, work_id, lambda: long_work.resend_long_work(kind=kind, key=work_id))


@router.write(
    "operations/work/{kind}/{work_id}/cancel",
    response={202: ActedOut},
    summary="Have work stop at its next safe point; what it has reserved stays charged",
)
def stop_work(request: HttpRequest, kind: str, work_id: str) -> Any:
    _staff(request, Scope.OPERATIONS_WRITE)
    by = person_of(request).get_username()
    return _acted(kind, work_id, lambda: long_work.stop_long_work(kind=kind, key=work_id, by=by))


def _staff(request: HttpRequest, scope: Scope) -> None:
    require_scope(request, scope)
    if not person_of(request).is_staff:
        raise PermissionDenied(in_english("Administrators of the site run it."))


def _acted(kind: str, work_id: str, done: Any) -> Any:
    if kind not in long_work.KINDS:
        raise Http404
    if not done():
        raise NothingWaits(as_message("It is running or has ended."))
    return {"kind": kind, "id": work_id}


def _work(one: long_work.LongWork) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "id": one.key,
        "name": str(one.name),
        "project": one.project,
        "state": one.state,
        "attempt": one.attempt,
        "since": one.since,
        "trouble": str(one.trouble),
        "error": str(one.error),
        "error_as_code": as_code(one.error),
        "may_be_sent": one.may_be_sent,
    }
