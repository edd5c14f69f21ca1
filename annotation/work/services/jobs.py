"""Long work as people see it: opened with what caused it, sent to a worker, sent again when nobody finishes it."""

import logging
from collections import Counter
from datetime import timedelta
from uuid import UUID

from celery import current_app
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Now

from annotation.errors import SiteBusy
from annotation.models import UNFINISHED, Job, Project, ProjectState, WorkState
from annotation.work.services import broker, looks

logger = logging.getLogger(__name__)
IMPORT = "import"
GATE = "gate"
SURVEY = "survey"
COMPARE = "compare"
SIMULATE = "simulate"
FORGET = "forget"
DELETE = "delete"
EXPORT = "export"
# By name, because tasks call services and not the other way round.
TASKS = {
    IMPORT: "annotation.tasks.import_dataset_task",
    GATE: "annotation.tasks.run_gate_task",
    SURVEY: "annotation.tasks.run_survey_task",
    COMPARE: "annotation.tasks.compare_answers_task",
    SIMULATE: "learner.tasks.simulate_plan_task",
    FORGET: "learner.tasks.forget_contributor_task",
    DELETE: "learner.tasks.delete_project_task",
    EXPORT: "annotation.tasks.export_labels_task",
}


def refuse_when_busy() -> None:
    """Raise `SiteBusy` where more long work waits than the site takes on; nothing people do by hand asks this."""
    if is_busy():
        raise SiteBusy("Much long work waits already, so nothing was taken on. Try again in a few minutes.")


def is_busy() -> bool:
    """Say whether as many jobs wait for a worker as `HEAVY_BACKLOG_LIMIT` allows."""
    waiting = Job.objects.filter(state=WorkState.WAITING, kind__in=TASKS)
    return waiting.count() >= settings.HEAVY_BACKLOG_LIMIT


def open_job(*, project: Project | None, kind: str, owner: AbstractBaseUser | None = None, send: bool = True) -> Job:
    """Write a job that waits, in the caller's transaction, and send it once that commits and its share has room."""
    job: Job = Job.objects.create(project=project, kind=kind, owner=owner)  # type: ignore[misc]
    if send:
        # No partial: Django names what failed, and a partial has no name.
        transaction.on_commit(lambda: send_unsent(Q(pk=job.pk)), robust=True)
    return job


def send_unsent(among: Q) -> int:
    """Send jobs that nobody has sent, oldest first, as long as few of their project and person are with the workers.

    Who starts much long work waits for their own, and nobody else does.
    """
    open_work = _open_jobs()
    in_hand: Counter[tuple[str, int]] = Counter()
    for project_id, owner_id in open_work.exclude(sent_at=None).values_list("project_id", "owner_id"):
        in_hand.update(_shares(project_id, owner_id))
    unsent = open_work.filter(among, sent_at=None, state=WorkState.WAITING)
    sent = 0
    for job_id, kind, *of in unsent.order_by("created_at").values_list("pk", "kind", "project_id", "owner_id"):
        shares = _shares(*of)
        # People wait for what they were promised to be rid of, whatever else their project does.
        if kind in (FORGET, DELETE) or all(in_hand[share] < settings.HEAVY_SHARE for share in shares):
            send_job(job_id=job_id, kind=kind)
            in_hand.update(shares)
            sent += 1
    return sent


def send_next(*, after: Job) -> None:
    """Send jobs that waited for the share of one that has ended."""
    send_unsent(Q(project__isnull=False, project=after.project_id) | Q(owner__isnull=False, owner=after.owner_id))


def _shares(project_id: int | None, owner_id: int | None) -> list[tuple[str, int]]:
    shares = (("project", project_id), ("person", owner_id))
    return [(of, number) for of, number in shares if number is not None]


def send_job(*, job_id: UUID, kind: str) -> None:
    """Hand a job to the broker; sending twice is harmless, because only one worker can take it."""
    current_app.signature(TASKS[kind], kwargs={"job_id": str(job_id)}).apply_async()
    Job.objects.filter(pk=job_id).update(sent_at=Now())


def send_project_changed(project_id: int) -> None:
    """Say, once the caller's transaction commits, that the project may be able to take its next step.

    Where the message is lost, the clock looks at the project.
    """
    looks.look_at([project_id])
    changed = current_app.signature(settings.PROJECT_CHANGED_TASK, kwargs={"project_id": project_id})
    transaction.on_commit(changed.apply_async, robust=True)


def resend_stalled_jobs() -> int:
    """Send again what waits for long or was dropped by its worker, and what was never sent; return how many."""
    patience = timedelta(seconds=settings.WORK_LEASE_SECONDS)
    long_ago = models.ExpressionWrapper(Now() - patience, output_field=models.DateTimeField())
    sent_jobs = _open_jobs().exclude(sent_at=None).filter(Q(state=WorkState.WAITING) | Q(leased_until__lt=Now()))
    stalled = sent_jobs.filter(sent_at__lt=long_ago)
    sent = 0
    if stalled.exists() and broker.may_have_lost(sent_jobs.count()):
        for job_id, kind in stalled.order_by("created_at").values_list("pk", "kind"):
            logger.info("job %s of kind %s is sent again", job_id, kind)
            send_job(job_id=job_id, kind=kind)
            sent += 1
    # A process whose clock was ahead wrote a time that is still to come.
    return sent + send_unsent(Q(created_at__lt=long_ago) | Q(created_at__gt=Now()))


def _open_jobs() -> models.QuerySet[Job]:
    """Return jobs that somebody does or will do."""
    # Nothing is scheduled for a project that was put away, but for what it is owed: that people and it are forgotten.
    closed = Q(project__state__in=(ProjectState.ARCHIVED, ProjectState.DELETED))
    return Job.objects.filter(state__in=UNFINISHED, kind__in=TASKS).exclude(closed & ~Q(kind__in=(FORGET, DELETE)))
