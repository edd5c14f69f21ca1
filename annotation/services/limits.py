"""Changing the limit of a project's account, alone or with a second manager, who is never the one that asked."""

from datetime import timedelta
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import DateTimeField, ExpressionWrapper
from django.db.models.functions import Now

from annotation.errors import LimitRequestRefused
from annotation.limit_models import LimitRequest, RequestKind, RequestState
from annotation.models import Membership, Project, Role
from privacy.accounting.units import delta_limit_to_atto, epsilon_limit_to_nano
from privacy.models import BudgetAccount
from privacy.services import ledger

# A request nobody decided on is about a situation that has passed.
LIFETIME = timedelta(days=7)


def change_limit(
    *, project: Project, account: BudgetAccount, epsilon_limit: float, delta_limit: float, reason: str, actor: User
) -> LimitRequest | None:
    """Change a limit; where a higher one needs a second manager, ask for it instead and return the request."""
    epsilon, delta = _nano(epsilon_limit), _atto(delta_limit)
    account.refresh_from_db()
    project.refresh_from_db()
    higher = epsilon > account.epsilon_limit_nano or delta > account.delta_limit_atto
    if not (project.second_manager and higher):
        ledger.change_limit(
            account=account, epsilon_limit=epsilon_limit, delta_limit=delta_limit, actor=actor, reason=reason
        )
        return None
    return _ask(
        project=project,
        kind=RequestKind.LIMIT,
        account=account,
        epsilon_limit_nano=epsilon,
        delta_limit_atto=delta,
        reason=reason,
        requested_by=actor,
    )


def demand_second_manager(*, project: Project) -> None:
    """From now on a higher limit needs a second manager; there must be one."""
    managers = Membership.objects.filter(project=project, role=Role.MANAGER, user__is_active=True)
    if managers.count() < 2:
        raise LimitRequestRefused("A second manager must be a member first, or nobody could approve anything.")
    project.second_manager = True
    project.save(update_fields=["second_manager"])


def ask_to_decide_alone(*, project: Project, reason: str, actor: User) -> LimitRequest:
    """Ask another manager to let one manager raise limits alone again."""
    return _ask(project=project, kind=RequestKind.ALONE, reason=reason, requested_by=actor)


def approve(*, request_id: int, project: Project, actor: User) -> LimitRequest:
    """Grant a request and make the change it asks for, both or neither."""
    with transaction.atomic():
        found = _open_request(request_id, project)
        if found.requested_by_id == actor.pk:
            raise LimitRequestRefused("Another manager has to approve this; you asked for it.")
        _decide(found, RequestState.APPROVED, actor)
        if found.kind == RequestKind.ALONE:
            project.second_manager = False
            project.save(update_fields=["second_manager"])
        else:
            assert found.account is not None
            assert found.epsilon_limit_nano is not None
            assert found.delta_limit_atto is not None
            ledger.change_limit(
                account=found.account,
                epsilon_limit=Decimal(found.epsilon_limit_nano).scaleb(-9),
                delta_limit=Decimal(found.delta_limit_atto).scaleb(-18),
                actor=found.requested_by,
                reason=f"{found.reason} (approved by {actor.get_username()})",
            )
    found.refresh_from_db()
    return found


def refuse(*, request_id: int, project: Project, actor: User) -> LimitRequest:
    """Refuse a request; who asked for it takes it back by this."""
    with transaction.atomic():
        found = _open_request(request_id, project)
        own = found.requested_by_id == actor.pk
        _decide(found, RequestState.WITHDRAWN if own else RequestState.REFUSED, actor)
    return found


def expire_requests() -> int:
    """Close what nobody decided on in time, and return how many those were."""
    late = LimitRequest.objects.filter(state=RequestState.OPEN, expires_at__lt=Now())
    return late.update(state=RequestState.EXPIRED, decided_at=Now())


def _ask(**fields: object) -> LimitRequest:
    expire_requests()
    expires = ExpressionWrapper(Now() + LIFETIME, output_field=DateTimeField())
    try:
        with transaction.atomic():
            created: LimitRequest = LimitRequest.objects.create(expires_at=expires, **fields)
    except IntegrityError as error:
        if "annotation_limitrequest_one" in str(error):
            raise LimitRequestRefused("Something like this is asked for already and waits for a manager.") from error
        raise
    created.refresh_from_db()
    return created


def _open_request(request_id: int, project: Project) -> LimitRequest:
    """Return a request that may still be decided on, under a lock: two managers cannot both decide."""
    expire_requests()
    found = (
        LimitRequest.objects.select_for_update(of=("self",))
        .select_related("account", "requested_by")
        .filter(pk=request_id, project=project, state=RequestState.OPEN)
        .first()
    )
    if found is None:
        raise LimitRequestRefused("This request was decided on, withdrawn, or has expired.")
    return found


def _decide(found: LimitRequest, state: RequestState, actor: User) -> None:
    LimitRequest.objects.filter(pk=found.pk).update(state=state, decided_by=actor, decided_at=Now())


def _nano(epsilon: float) -> int:
    return epsilon_limit_to_nano(Decimal(repr(epsilon)))


def _atto(delta: float) -> int:
    return delta_limit_to_atto(Decimal(repr(delta)))
