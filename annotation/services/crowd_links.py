"""Links for crowd platforms: an account for each participant, and a code when they are done."""

import hashlib
import secrets
from datetime import timedelta
from hmac import compare_digest

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from annotation.errors import InvalidConfiguration, LinkEnded, NotMember
from annotation.joining_models import CrowdLink, CrowdParticipant
from annotation.models import AssignmentState, Membership, Oracle, Project, Role
from annotation.services import lifecycle, projects, queue
from privacy.wording import say

ENDED = say("This study is not open, or not any more. Please return it on the platform.")
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
) -> CrowdLink:
    """Make a link; only for a crowd project, because whoever comes by it is a stranger."""
    if project.oracle != Oracle.CROWD:
        raise InvalidConfiguration("Only a crowd project is opened to a crowd: this one shows private records.")
    return CrowdLink.objects.create(
        project=project,
        token=secrets.token_urlsafe(24),
        platform=platform,
        study=study,
        answers_wanted=answers_wanted,
        completion_code="".join(secrets.choice(CODE_LETTERS) for _ in range(8)),
        maximum_participants=maximum_participants,
        expires_at=timezone.now() + lifetime,
        created_by=owner,
    )


def revoke_link(*, link: CrowdLink) -> None:
    """Let nobody new in; who is in finishes and gets the code."""
    CrowdLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=Now())


def find_link(*, token: str, study: str) -> CrowdLink:
    """Return the live link, if it is meant for this study."""
    link = CrowdLink.objects.select_related("project").filter(token=token).first()
    if (
        link is None
        or link.project.oracle != Oracle.CROWD
        or link.project.state in lifecycle.CLOSED
        or (link.study and not compare_digest(link.study.encode(), study.encode()))
    ):
        raise LinkEnded(ENDED)
    return link


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
    projects.add_member(project=project, user=user, role=Role.ANNOTATOR)
    return user


def answers_of(participant: CrowdParticipant) -> int:
    """Count what the participant has answered since they came by this link."""
    answered = participant.user.assignments.filter(
        project=participant.link.project_id,
        state=AssignmentState.LABELLED,
        finished_at__gte=participant.created_at,
    )
    return answered.count()


def is_done(participant: CrowdParticipant) -> bool:
    """Say whether the participant has given all the answers the link asks for."""
    return answers_of(participant) >= participant.link.answers_wanted


def complete(*, participant: CrowdParticipant) -> bool:
    """Close the participation if everything is answered, or nothing is left to answer; say whether it is closed."""
    if participant.completed_at is not None:
        return True
    project = participant.link.project
    member = Membership.objects.filter(project=project, user=participant.user, role=Role.ANNOTATOR).first()
    if member is None or member.paused_at is not None:
        return False
    if not is_done(participant) and queue.claim_next(project=project, user=participant.user) is not None:
        return False
    participant.completed_at = timezone.now()
    participant.save(update_fields=["completed_at"])
    return True


def own_participation(*, participant_id: int | None, user: User, project: Project) -> CrowdParticipant:
    """Return the participation this session began with, if it is the person's own."""
    found = CrowdParticipant.objects.select_related("link__project", "user").filter(
        pk=participant_id or 0, user=user, link__project=project
    )
    participant = found.first()
    if participant is None:
        raise NotMember("Come by the platform's link first.")
    return participant


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
