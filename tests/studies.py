"""Studies in tests: a crowd project connected to the tests' own platform, a published study, people who come."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.utils import timezone

from addons.prolific import selectors
from addons.prolific.models import CrowdStudy, CrowdSubmission, StudyStep
from addons.prolific.services import accounts, following, studies
from annotation.models import Project, Role
from annotation.models.joining import CrowdLink, CrowdParticipant
from annotation.people.services import crowd_links
from tests.factories import add_members, make_project
from tests.prolific_server import TOKEN, PlatformServer


def open_paid_crowd(owner: User) -> Project:
    """Open a crowd project with a limit of 100.00 in money."""
    money = {"price_per_label": "0.10", "money_limit": "100.00", "currency": "GBP"}
    project = make_project(owner=owner, oracle="crowd", normalizer="L1", **money)
    add_members(project, owner, role=Role.MANAGER)
    return project


def connect(project: Project, actor: User, *, token: str = TOKEN, fee: str = "50") -> None:
    accounts.connect_account(project=project, token=token, fee_percent=Decimal(fee), actor=actor)


def open_study(project: Project, owner: User, **changes: Any) -> CrowdStudy:
    """Write down a study: four places of 2.00 for six minutes."""
    values: dict[str, Any] = {
        "name": "Voice queries",
        "description": "Say what each means.",
        "places": 4,
        "reward_cents": 200,
        "minutes": 6,
        "answers_wanted": 2,
        "lifetime": timedelta(days=3),
    }
    return studies.open_study(project=project, owner=owner, **(values | changes))


def turn(study: CrowdStudy) -> CrowdStudy:
    """Let a worker have its turn now, whenever it was due."""
    CrowdStudy.objects.filter(pk=study.pk).update(next_at=Now(), leased_until=None)
    following.follow_study(study_id=study.pk)
    study.refresh_from_db()
    return study


def publish(study: CrowdStudy) -> CrowdStudy:
    turn(study)
    studies.want_step(study=study, step=StudyStep.PUBLISH)
    return turn(study)


def come(server: PlatformServer, study: CrowdStudy, name: str, *, done: bool = True) -> CrowdParticipant:
    """Let somebody take a place on the platform, come by the link and, unless told otherwise, do all of it."""
    link = CrowdLink.objects.get(pk=study.link_id)
    pid = f"pid-of-{name}"
    server.come(study.external_id, pid, code=link.completion_code if done else None)
    participant = crowd_links.join(link=link, pid=pid)
    if done:
        CrowdParticipant.objects.filter(pk=participant.pk).update(completed_at=timezone.now())
    return participant


def waiting(study: CrowdStudy) -> tuple[CrowdParticipant, CrowdSubmission]:
    name = uuid4().hex
    link = CrowdLink.objects.get(pk=study.link_id)
    participant = crowd_links.join(link=link, pid=name)
    digest = CrowdParticipant.objects.get(pk=participant.pk).pid_digest
    return participant, CrowdSubmission.objects.create(
        study=study, external_id=name, pid_digest=digest, state=selectors.REVIEWED
    )
