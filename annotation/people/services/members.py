"""Who takes part in a project: giving a person a role and taking it away."""

from django.contrib.auth.models import User
from django.db import transaction

from annotation import selectors
from annotation.errors import RoleRefused
from annotation.models import (
    Assignment,
    AssignmentState,
    Membership,
    Project,
    Role,
)
from annotation.people.services import appointing, groups
from annotation.work.services import leases
from privacy.wording import as_message

STRANGER = as_message("Whoever came by a crowd platform is a stranger and takes no other role.")
OWN_WAY_OUT = as_message("You cannot take the manager's role from yourself.")


def add_member(*, project: Project, user: User, role: str) -> Membership:
    """Give a person a role, by themselves even where a group gives it, too; giving it twice changes nothing."""
    if not selectors.may_take_role(user, project, role):
        raise RoleRefused(STRANGER)
    appointing.refuse_alone(project=project, user=user, role=role)
    appointing.refuse_reviewer(project=project, role=role)
    membership, _ = Membership.objects.update_or_create(
        project=project, user=user, role=role, defaults={"is_direct": True}
    )
    return membership


def remove_member(*, project: Project, user: User, role: str) -> list[str]:
    """Take a role from a person; return the invitations and crowd links that end with a manager's."""
    own = Membership.objects.filter(project=project, user=user, role=role)
    with transaction.atomic():
        # Locked first: a group that gives or takes the role at this moment is seen, or waits.
        locked = own.select_for_update().first()
        if locked is None:
            return []
        if own.filter(groups.by_group()).exists():
            own.update(is_direct=False)
            return []
        locked.delete()
        if role == Role.ANNOTATOR:
            held = Assignment.objects.filter(project=project, annotator=user, state=AssignmentState.LEASED)
            leases.give_back(held)
            leases.free_assigned(project_id=project.pk, user_id=user.pk)
        leases.end_reviews(project_id=project.pk, user_id=user.pk)
        return groups.end_ways_in(project_id=project.pk, user_id=user.pk) if role == Role.MANAGER else []


def is_own_way_out(*, membership: Membership, user: User) -> bool:
    """Say whether somebody would take the manager's role from themselves, and perhaps leave nobody who has it."""
    return membership.user_id == user.pk and membership.role == Role.MANAGER
