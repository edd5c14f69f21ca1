"""Changes that take two managers: higher limits, further managers, and giving that rule up."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import DateTimeField, ExpressionWrapper, QuerySet
from django.db.models.functions import Now

from annotation import selectors
from annotation.errors import LimitRequestRefused, RoleRefused
from annotation.models import Membership, Project, Role
from annotation.models.limits import BudgetManager, LimitRequest, RequestKind, RequestState
from annotation.models.people import GroupRole
from annotation.people.services import members
from annotation.signals import limit_changing
from annotation.work.services import looks
from privacy.accounting.cost import delta_limit_to_atto, epsilon_limit_to_nano
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount
from privacy.wording import as_message

# A request nobody decided on is about a situation that has passed.
LIFETIME = timedelta(days=7)


def change_limit(
    *,
    project: Project | None = None,
    account: BudgetAccount,
    epsilon_limit: float,
    delta_limit: float,
    reason: str,
    actor: User,
) -> LimitRequest | None:
    """Change a limit; where a higher one needs a second manager (a population's always), return the request for it."""
    epsilon = epsilon_limit_to_nano(Decimal(repr(epsilon_limit)))
    delta = delta_limit_to_atto(Decimal(repr(delta_limit)))
    account.refresh_from_db()
    if project is not None:
        project.refresh_from_db()
    higher = epsilon > account.epsilon_limit_nano or delta > account.delta_limit_atto
    if not higher or (project is not None and not project.second_manager):
        _change(project, account, epsilon, delta, actor=actor, reason=reason)
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
    managers = Membership.objects.filter(project=project, role=Role.MANAGER, user__is_active=True)
    with transaction.atomic():
        # Whoever gives a group a role at this moment is waited for and then seen.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if managers.count() < 2:
            raise LimitRequestRefused("Add a second manager first; otherwise nothing could be approved.")
        if GroupRole.objects.filter(project=project, role=Role.MANAGER).exists():
            raise LimitRequestRefused("Managers are appointed one by one here: others decide who is in a group.")
        project.second_manager = True
        project.save(update_fields=["second_manager"])


def appoint_manager(*, project: Project, user: User, actor: User) -> LimitRequest | None:
    held = Membership.objects.filter(project=project, user=user, role=Role.MANAGER).exists()
    if held or not members.needs_second(project, Role.MANAGER):
        members.add_member(project=project, user=user, role=Role.MANAGER)
        return None
    if not selectors.may_take_role(user, project, Role.MANAGER):
        raise RoleRefused(members.STRANGER)
    reason = as_message("{name} is to manage the project", name=user.get_username())
    return _ask(project=project, kind=RequestKind.MANAGER, appointee=user, reason=reason, requested_by=actor)


def appoint_budget_manager(*, account: BudgetAccount, user: User, reason: str, actor: User) -> LimitRequest:
    if BudgetManager.objects.filter(account=account, user=user).exists():
        raise LimitRequestRefused("This person manages the population already.")
    return _ask(account=account, kind=RequestKind.MANAGER, appointee=user, reason=reason, requested_by=actor)


def waiting_appointment(*, project: Project, user: User) -> LimitRequest | None:
    asked = LimitRequest.objects.filter(project=project, kind=RequestKind.MANAGER, appointee=user)
    return asked.filter(state=RequestState.OPEN, expires_at__gte=Now()).first()


def ask_to_decide_alone(*, project: Project, reason: str, actor: User) -> LimitRequest:
    return _ask(project=project, kind=RequestKind.ALONE, reason=reason, requested_by=actor)


def approve_request(*, request_id: int, of: Project | BudgetAccount, actor: User) -> LimitRequest:
    """Grant a request and make the change it asks for, both or neither."""
    with transaction.atomic():
        found = _open_request(request_id, of)
        if found.requested_by_id == actor.pk:
            raise LimitRequestRefused("Another manager must approve your request.")
        _decide(found, RequestState.APPROVED, actor)
        found.decided_by = actor
        CHANGES[RequestKind(found.kind)](found)
    found.refresh_from_db()
    return found


def refuse_request(*, request_id: int, of: Project | BudgetAccount, actor: User) -> LimitRequest:
    with transaction.atomic():
        found = _open_request(request_id, of)
        own = found.requested_by_id == actor.pk
        _decide(found, RequestState.WITHDRAWN if own else RequestState.REFUSED, actor)
    return found


def expire_requests() -> int:
    late = LimitRequest.objects.filter(state=RequestState.OPEN, expires_at__lt=Now())
    return late.update(state=RequestState.EXPIRED, decided_at=Now())


def requests_of(of: Project | BudgetAccount, rows: QuerySet[LimitRequest] | None = None) -> QuerySet[LimitRequest]:
    rows = LimitRequest.objects.all() if rows is None else rows
    return rows.filter(project=of) if isinstance(of, Project) else rows.filter(project=None, account=of)


def _ask(**fields: object) -> LimitRequest:
    expire_requests()
    expires = ExpressionWrapper(Now() + LIFETIME, output_field=DateTimeField())
    try:
        with transaction.atomic():
            created = LimitRequest(expires_at=expires, **fields)
            created.save(force_insert=True)
    except IntegrityError as error:
        if "annotation_limitrequest_one" in str(error):
            raise LimitRequestRefused("The same request already waits for a manager.") from error
        raise
    created.refresh_from_db()
    return created


def _open_request(request_id: int, of: Project | BudgetAccount) -> LimitRequest:
    expire_requests()
    rows = LimitRequest.objects.select_for_update(of=("self",)).select_related("requested_by", "appointee")
    found = requests_of(of, rows).filter(pk=request_id, state=RequestState.OPEN).first()
    if found is None:
        raise LimitRequestRefused("This request was decided, withdrawn or has expired.")
    if isinstance(of, Project):
        found.project = of
    return found


def _decide(found: LimitRequest, state: RequestState, actor: User) -> None:
    LimitRequest.objects.filter(pk=found.pk).update(state=state, decided_by=actor, decided_at=Now())


def _decide_alone(found: LimitRequest) -> None:
    assert found.project is not None
    found.project.second_manager = False
    found.project.save(update_fields=["second_manager"])


def _appoint(found: LimitRequest) -> None:
    assert found.appointee is not None
    if found.project is not None:
        members.add_member(project=found.project, user=found.appointee, role=Role.MANAGER)
    else:
        assert found.account is not None
        BudgetManager.objects.create(account=found.account, user=found.appointee)


def _raise_limit(found: LimitRequest) -> None:
    assert found.account is not None
    assert found.epsilon_limit_nano is not None
    assert found.delta_limit_atto is not None
    _change(
        found.project,
        found.account,
        found.epsilon_limit_nano,
        found.delta_limit_atto,
        actor=found.requested_by,
        reason=found.reason,
        approved_by=found.decided_by,
    )


CHANGES: dict[RequestKind, Callable[[LimitRequest], None]] = {
    RequestKind.ALONE: _decide_alone,
    RequestKind.MANAGER: _appoint,
    RequestKind.LIMIT: _raise_limit,
}


def _change(
    project: Project | None,
    account: BudgetAccount,
    epsilon_limit_nano: int,
    delta_limit_atto: int,
    *,
    actor: User,
    reason: str,
    approved_by: User | None = None,
) -> None:
    with transaction.atomic():
        if project is not None:
            limit_changing.send(
                sender=BudgetAccount,
                project=project,
                account=account,
                epsilon_limit_nano=epsilon_limit_nano,
                delta_limit_atto=delta_limit_atto,
            )
        ledger.change_account_limits(
            account=account,
            epsilon_limit=Decimal(epsilon_limit_nano).scaleb(-9),
            delta_limit=Decimal(delta_limit_atto).scaleb(-18),
            actor=actor,
            reason=reason,
            approved_by=approved_by,
        )
        sharing = Project.objects.filter(pool_account__parent=account).values_list("pk", flat=True)
        looks.look_at(sharing if project is None else [project.pk])
