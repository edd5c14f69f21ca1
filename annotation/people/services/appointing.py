"""Who becomes a manager where one does not decide alone, and a reviewer: else a second account would be enough."""

from django.contrib.auth.models import User
from django.db.models.functions import Now

from annotation.errors import RoleRefused
from annotation.models import Membership, Oracle, Project, Role
from annotation.models.limits import LimitRequest, RequestKind, RequestState
from privacy.wording import as_message

ALONE = as_message(
    "Another manager has to agree to a further manager of this project: give the role to a person on the page People, "
    "where it waits for that."
)

ONLY_MANAGERS_REVIEW = as_message(
    "In front of a crowd nobody reviews but managers: who sees what was answered could tell the annotators, who are "
    "strangers, that answers differ."
)


def needs_second(project: Project, role: str) -> bool:
    return role == Role.MANAGER and Project.objects.filter(pk=project.pk, second_manager=True).exists()


def refuse_alone(*, project: Project, role: str, user: User | None = None) -> None:
    """Refuse to make somebody a manager whom no second manager agreed to; without a person, whoever it would be."""
    if not needs_second(project, role):
        return
    if user is not None and (_is_manager(project, user) or _is_agreed(project, user)):
        return
    raise RoleRefused(ALONE)


def refuse_reviewer(*, project: Project, role: str) -> None:
    if role == Role.REVIEWER and project.oracle == Oracle.CROWD:
        raise RoleRefused(ONLY_MANAGERS_REVIEW)


def _is_manager(project: Project, user: User) -> bool:
    return Membership.objects.filter(project=project, user=user, role=Role.MANAGER).exists()


def _is_agreed(project: Project, user: User) -> bool:
    approved = LimitRequest.objects.filter(project=project, appointee=user, kind=RequestKind.MANAGER)
    return approved.filter(state=RequestState.APPROVED, used_at=None, expires_at__gte=Now()).exists()
