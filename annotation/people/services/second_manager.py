"""What one manager asks for and another grants, of a project or a population: decided on once, or expired."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import DateTimeField, ExpressionWrapper
from django.db.models.functions import Now

from annotation.errors import LimitRequestRefused
from annotation.models import Project
from annotation.models.limits import LimitRequest, RequestState
from annotation.models.populations import PopulationRequest
from privacy.ledger.models import Population

Request = TypeVar("Request", LimitRequest, PopulationRequest)
# A request nobody decided on is about a situation that has passed.
LIFETIME = timedelta(days=7)


def ask_second_manager(table: type[Request], /, **fields: object) -> Request:
    """Write down what a manager asks for, unless the same waits already."""
    expire_requests(table)
    expires = ExpressionWrapper(Now() + LIFETIME, output_field=DateTimeField())
    try:
        with transaction.atomic():
            created = table(expires_at=expires, **fields)
            created.save(force_insert=True)
    except IntegrityError as error:
        if f"annotation_{table._meta.model_name}_one" in str(error):
            raise LimitRequestRefused("Something like this is asked for already and waits for a manager.") from error
        raise
    created.refresh_from_db()
    return created


def approve_request(
    table: type[Request],
    /,
    *,
    request_id: int,
    actor: User,
    change: Callable[[Request], None],
    **of: Project | Population,
) -> Request:
    """Grant a request and make the change it asks for, both or neither."""
    with transaction.atomic():
        found = _open_request(table, request_id, **of)
        if found.requested_by_id == actor.pk:
            raise LimitRequestRefused("Another manager has to approve this; you asked for it.")
        _decide(table, found.pk, RequestState.APPROVED, actor)
        found.decided_by = actor
        change(found)
    found.refresh_from_db()
    return found


def refuse_request(table: type[Request], /, *, request_id: int, actor: User, **of: Project | Population) -> Request:
    """Refuse a request; who asked for it takes it back by this."""
    with transaction.atomic():
        found = _open_request(table, request_id, **of)
        own = found.requested_by_id == actor.pk
        _decide(table, found.pk, RequestState.WITHDRAWN if own else RequestState.REFUSED, actor)
    return found


def expire_requests(table: type[Request]) -> int:
    """Close what nobody decided on in time, and return how many those were."""
    late = table.objects.filter(state=RequestState.OPEN, expires_at__lt=Now())
    return late.update(state=RequestState.EXPIRED, decided_at=Now())


def _open_request(table: type[Request], request_id: int, /, **of: Project | Population) -> Request:
    """Return a request that may still be decided on, under a lock: two managers cannot both decide."""
    expire_requests(table)
    rows = table.objects.select_for_update(of=("self",)).select_related("requested_by", "appointee")
    found = rows.filter(pk=request_id, state=RequestState.OPEN, **of).first()
    if found is None:
        raise LimitRequestRefused("This request was decided on, withdrawn, or has expired.")
    return found


def _decide(table: type[Request], number: int, state: RequestState, actor: User) -> None:
    table.objects.filter(pk=number).update(state=state, decided_by=actor, decided_at=Now())
