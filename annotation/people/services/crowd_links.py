"""Links for crowd platforms: an account for each participant, and a code when they are done."""

import hashlib
import secrets
from collections.abc import Mapping
from datetime import timedelta
from hmac import compare_digest

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from annotation import access
from annotation.errors import InvalidConfiguration, LinkEnded
from annotation.models import Oracle, Project, Role
from annotation.models.joining import CrowdLink, CrowdParticipant
from annotation.people.services import members
from annotation.people.services.signed_arrivals import believed, signing_hindrance
from annotation.work.services.tokens import secret_digest
from privacy.wording import as_message

ENDED = as_message("This study is not open, or not any more. Please return it on the platform.")
CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def create_link(
    *,
    project: Project,
    platform: str,
    study: str,
    answers_wanted: int,
    maximum_participants: int,
    lifetime: timedelta,
    owner: User,
    token: str = "",
    signed: bool = False,
) -> tuple[CrowdLink, str]:
    """Make a link, and return it with its token, which is kept nowhere; whoever comes by it is a stranger."""
    if project.oracle != Oracle.CROWD:
        raise InvalidConfiguration("Only a crowd project is opened to a crowd: this one shows private records.")
    if signed and (hindrance := signing_hindrance(platform)):
        raise InvalidConfiguration(hindrance)
    token = token or secrets.token_urlsafe(24)
    link = CrowdLink.objects.create(
        project=project,
        digest=secret_digest(token),
        platform=platform,
        study=study,
        answers_wanted=answers_wanted,
        completion_code="".join(secrets.choice(CODE_LETTERS) for _ in range(8)),
        maximum_participants=maximum_participants,
        expires_at=timezone.now() + lifetime,
        signed=signed,
        created_by=owner,
    )
    return link, token


def revoke_link(*, link: CrowdLink) -> None:
    CrowdLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=Now())


def find_link(*, token: str) -> CrowdLink:
    link = CrowdLink.objects.select_related("project").filter(digest=secret_digest(token)).first()
    if link is None or link.project.oracle != Oracle.CROWD or link.project.state in access.CLOSED:
        raise LinkEnded(ENDED)
    return link


def read_arrival(*, link: CrowdLink, sent: Mapping[str, str], study: str, signature: str) -> Mapping[str, str]:
    """Return what the platform says of whoever it sends, if it is for the link's study and, where asked for, signed."""
    parameters = believed(token=signature, sent=sent) if link.signed else sent
    if link.study and not compare_digest(link.study.encode(), parameters[study].encode()):
        raise LinkEnded(ENDED)
    return parameters


def join(*, link: CrowdLink, pid: str) -> CrowdParticipant:
    """Return the participant with this platform id, a new one with an account where they are new to the project."""
    digest = _digest(link, pid)
    with transaction.atomic():
        # One after another, so that the last place is given once.
        link = CrowdLink.objects.select_for_update().get(pk=link.pk)
        known = CrowdParticipant.objects.select_related("user").filter(link__project=link.project_id, pid_digest=digest)
        here = known.filter(link=link).first()
        if here is not None:
            return here
        full = link.participants.count() >= link.maximum_participants
        if full or link.revoked_at is not None or link.expires_at <= timezone.now():
            raise LinkEnded(ENDED)
        earlier = known.first()
        user = earlier.user if earlier else _new_account(link.project)
        return CrowdParticipant.objects.create(link=link, user=user, pid_digest=digest)


def _new_account(project: Project) -> User:
    user = User.objects.create_user(username=f"participant-{secrets.token_hex(6)}")
    members.add_member(project=project, user=user, role=Role.ANNOTATOR)
    return user


def pid_digest(*, project: Project, platform: str, pid: str) -> bytes:
    """Return what is kept of a platform's id: a keyed hash that differs between projects."""
    return hashlib.blake2b(
        f"{platform}\0{project.pk}\0{pid}".encode(),
        key=settings.PSEUDONYM_KEY.encode()[:64],
        person=b"crowd pid",
        digest_size=16,
    ).digest()


def _digest(link: CrowdLink, pid: str) -> bytes:
    return pid_digest(project=link.project, platform=link.platform, pid=pid)
