"""Invitation links: made by a manager, shown once, good for so many people until a day."""

import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from annotation import access
from annotation.errors import LinkEnded
from annotation.models import Membership, Project
from annotation.models.joining import Invitation
from annotation.people.services import members
from annotation.work.services.tokens import secret_digest

MAXIMUM_LIFETIME = timedelta(days=90)


def create_invitation(
    *,
    project: Project,
    role: str,
    maximum_uses: int,
    lifetime: timedelta,
    owner: User,
    note: str = "",
    secret: str = "",
) -> tuple[Invitation, str]:
    if not timedelta(0) < lifetime <= MAXIMUM_LIFETIME:
        raise ValueError(f"lifetime must be above 0 and at most 90 days, got {lifetime}")
    members.refuse_alone(project=project, role=role)
    members.refuse_reviewer(project=project, role=role)
    secret = secret or secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        project=project,
        role=role,
        digest=secret_digest(secret),
        note=note,
        maximum_uses=maximum_uses,
        expires_at=timezone.now() + lifetime,
        created_by=owner,
    )
    return invitation, secret


def live_invitations() -> QuerySet[Invitation]:
    live = Invitation.objects.filter(revoked_at=None, expires_at__gt=Now(), uses__lt=F("maximum_uses"))
    return live.exclude(project__state__in=access.CLOSED)


def find_invitation(*, secret: str) -> Invitation:
    """Return the live invitation behind a link; a wrong, ended or used one is told apart by nobody."""
    found = live_invitations().select_related("project", "created_by").filter(digest=secret_digest(secret)).first()
    if found is None:
        raise LinkEnded("This invitation is unknown or has ended. Ask for a new one.")
    return found


def is_live(invitation_id: int | None) -> bool:
    return invitation_id is not None and live_invitations().filter(pk=invitation_id).exists()


def accept_invitation(*, invitation: Invitation, user: User) -> bool:
    with transaction.atomic():
        # One after another: else the last place goes to many, or one person takes two.
        own = Invitation.objects.select_for_update(no_key=True).filter(pk=invitation.pk)
        if own.first() is not None and _is_in(invitation, user):
            return False
        if not live_invitations().filter(pk=invitation.pk).exists():
            raise LinkEnded("This invitation is unknown or has ended. Ask for a new one.")
        own.update(uses=F("uses") + 1)
        members.add_member(project=invitation.project, user=user, role=invitation.role)
    return True


def _is_in(invitation: Invitation, user: User) -> bool:
    held = Membership.objects.filter(project=invitation.project_id, user=user, role=invitation.role, is_direct=True)
    return held.exists()


def revoke_invitation(*, invitation: Invitation) -> None:
    Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=Now())
