"""What takes a second manager where a project asks for one: higher limits, further managers, giving the rule up."""

from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from annotation import selectors
from annotation.errors import LimitRequestRefused, RoleRefused
from annotation.models import Membership, Project, Role
from annotation.models.groups import GroupRole
from annotation.models.limits import LimitRequest, RequestKind, RequestState
from annotation.people.services import appointing, members, second_manager
from annotation.signals import limit_changing
from privacy.accounting.units import delta_limit_to_atto, epsilon_limit_to_nano
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount
from privacy.wording import as_message


def change_limit(
    *, project: Project, account: BudgetAccount, epsilon_limit: float, delta_limit: float, reason: str, actor: User
) -> LimitRequest | None:
    """Change a limit; where a higher one needs a second manager, ask for it instead and return the request."""
    epsilon = epsilon_limit_to_nano(Decimal(repr(epsilon_limit)))
    delta = delta_limit_to_atto(Decimal(repr(delta_limit)))
    account.refresh_from_db()
    project.refresh_from_db()
    higher = epsilon > account.epsilon_limit_nano or delta > account.delta_limit_atto
    if not (project.second_manager and higher):
        _change(project, account, epsilon, delta, actor=actor, reason=reason)
        return None
    return second_manager.ask_second_manager(
        LimitRequest,
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
    with transaction.atomic():
        # Whoever gives a group a role at this moment is waited for and then seen.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if managers.count() < 2:
            raise LimitRequestRefused("A second manager must be a member first, or nobody could approve anything.")
        if GroupRole.objects.filter(project=project, role=Role.MANAGER).exists():
            raise LimitRequestRefused(
                "A group makes managers here, and others say who is in it. Give the role to its people instead."
            )
        project.second_manager = True
        project.save(update_fields=["second_manager"])


def appoint_manager(*, project: Project, user: User, actor: User) -> LimitRequest | None:
    """Make somebody a manager; where that needs a second manager, ask for it instead and return the request."""
    held = Membership.objects.filter(project=project, user=user, role=Role.MANAGER).exists()
    if held or not appointing.needs_second(project, Role.MANAGER):
        members.add_member(project=project, user=user, role=Role.MANAGER)
        return None
    if not selectors.may_take_role(user, project, Role.MANAGER):
        raise RoleRefused(members.STRANGER)
    reason = as_message("{name} is to manage the project", name=user.get_username())
    return second_manager.ask_second_manager(
        LimitRequest, project=project, kind=RequestKind.MANAGER, appointee=user, reason=reason, requested_by=actor
    )


def waiting_appointment(*, project: Project, user: User) -> LimitRequest | None:
    """Return what a manager has asked for about this person, if nobody has decided on it."""
    asked = LimitRequest.objects.filter(project=project, kind=RequestKind.MANAGER, appointee=user)
    return asked.filter(state=RequestState.OPEN, expires_at__gte=Now()).first()


def ask_to_decide_alone(*, project: Project, reason: str, actor: User) -> LimitRequest:
    """Ask another manager to let one manager raise limits alone again."""
    return second_manager.ask_second_manager(
        LimitRequest, project=project, kind=RequestKind.ALONE, reason=reason, requested_by=actor
    )


def approve_limit_request(*, request_id: int, project: Project, actor: User) -> LimitRequest:
    """Grant a request and make the change it asks for, both or neither."""

    def change(found: LimitRequest) -> None:
        if found.kind == RequestKind.ALONE:
            project.second_manager = False
            project.save(update_fields=["second_manager"])
        elif found.kind == RequestKind.MANAGER:
            assert found.appointee is not None
            members.add_member(project=project, user=found.appointee, role=Role.MANAGER)
        else:
            assert found.account is not None
            assert found.epsilon_limit_nano is not None
            assert found.delta_limit_atto is not None
            _change(
                project,
                found.account,
                found.epsilon_limit_nano,
                found.delta_limit_atto,
                actor=found.requested_by,
                reason=found.reason,
                approved_by=found.decided_by,
            )

    return second_manager.approve_request(
        LimitRequest, request_id=request_id, actor=actor, change=change, project=project
    )


def refuse_limit_request(*, request_id: int, project: Project, actor: User) -> LimitRequest:
    """Refuse a request; who asked for it takes it back by this."""
    return second_manager.refuse_request(LimitRequest, request_id=request_id, actor=actor, project=project)


def expire_limit_requests() -> int:
    """Close what nobody decided on in time, and return how many those were."""
    return second_manager.expire_requests(LimitRequest)


def _change(
    project: Project,
    account: BudgetAccount,
    epsilon_limit_nano: int,
    delta_limit_atto: int,
    *,
    actor: User,
    reason: str,
    approved_by: User | None = None,
) -> None:
    """Change a limit once whatever prints the present one was issued anew: both or neither."""
    with transaction.atomic():
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
