"""Long work as people see it: opened with what caused it, sent to a worker, sent again when nobody finishes it."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from celery import current_app
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from annotation.errors import SiteBusy
from annotation.models import UNFINISHED, Job, LeasedWork, Project, ProjectState, WorkState
from annotation.work.services import broker, looks, sending

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
OWED = (FORGET, DELETE)
# Kinds of long work: the task that does it, and the name of its argument. The learner adds its own.
LONG_WORK: dict[type[LeasedWork], tuple[str, str]] = {Job: ("", "job_id")}


def refuse_when_busy() -> None:
    """Raise `SiteBusy` where more long work waits than the site takes on; nothing people do by hand asks this."""
    if is_busy():
        raise SiteBusy("Too much work is waiting. Try again in a few minutes.")


def is_busy() -> bool:
    """Say whether as many jobs wait for a worker as `HEAVY_BACKLOG_LIMIT` allows."""
    waiting = Job.objects.filter(state=WorkState.WAITING, kind__in=TASKS)
    return waiting.count() >= settings.HEAVY_BACKLOG_LIMIT


def open_job(*, project: Project | None, kind: str, owner: AbstractBaseUser | None = None, send: bool = True) -> Job:
    """Write a waiting job in the caller's transaction; with `send` it goes out on commit, once its share has room."""
    sent_at = None if send else timezone.now()
    job: Job = Job.objects.create(project=project, kind=kind, owner=owner, sent_at=sent_at)  # type: ignore[misc]
    if send:
        send_on_commit()
    return job


def send_on_commit() -> None:
    """Send what was never sent once the caller's transaction commits, as far as shares have room."""
    transaction.on_commit(send_unsent, robust=True)


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Long work that somebody does or will do; `shares` are its project and its person."""

    model: type[LeasedWork]
    key: int | UUID
    task: str
    argument: str
    shares: tuple[tuple[str, int], ...]
    is_owed: bool
    is_sent: bool
    is_stalled: bool

    def send(self) -> bool:
        """Hand it to the broker; sending twice is harmless, because only one worker can take it."""
        sent = sending.send(self.task, **{self.argument: self.key if isinstance(self.key, int) else str(self.key)})
        if sent:
            self.model._default_manager.filter(pk=self.key).update(sent_at=Now())
        return sent


def open_work(only: LeasedWork | None = None) -> list[OpenWork]:
    """Return the long work of all projects, oldest first, or one piece of it."""
    patience = timedelta(seconds=settings.WORK_LEASE_SECONDS)
    long_ago = models.ExpressionWrapper(Now() - patience, output_field=models.DateTimeField())
    # A process whose clock was ahead wrote a time that is still to come.
    lost = Q(sent_at__lt=long_ago) | Q(sent_at__gt=Now())
    stalled = lost & (Q(state=WorkState.WAITING) | Q(leased_until__lt=Now()))
    found = []
    for model, (task, argument) in LONG_WORK.items():
        if only is not None and type(only) is not model:
            continue
        rows: models.QuerySet[Any] = model._default_manager.filter(state__in=UNFINISHED)
        rows = rows if only is None else rows.filter(pk=only.pk)
        # Nothing is scheduled for a project that was put away, but for what it is owed: that people and it are
        # forgotten.
        closed = Q(project__state__in=(ProjectState.ARCHIVED, ProjectState.DELETED))
        if model is Job:
            rows = rows.filter(kind__in=TASKS).exclude(closed & ~Q(kind__in=OWED))
            rows = rows.annotate(named=F("kind"), person=F("owner_id"))
        else:
            rows = rows.exclude(closed)
            rows = rows.annotate(named=models.Value(""), person=F("project__created_by_id"))
        rows = rows.annotate(late=models.ExpressionWrapper(stalled, output_field=models.BooleanField()))
        for row in rows.values("created_at", "pk", "project_id", "sent_at", "named", "person", "late"):
            named, shares = row["named"], (("project", row["project_id"]), ("person", row["person"]))
            each = OpenWork(
                model,
                row["pk"],
                TASKS.get(named, task),
                argument,
                shares=tuple((of, number) for of, number in shares if number is not None),
                is_owed=named in OWED,
                is_sent=row["sent_at"] is not None,
                is_stalled=bool(row["late"]),
            )
            found.append((row["created_at"], each))
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def send_unsent(work: Sequence[OpenWork] | None = None) -> int:
    """Send unsent jobs, oldest first, within the shares of their projects and people."""
    work = open_work() if work is None else work
    in_hand = Counter(share for each in work if each.is_sent for share in each.shares)
    sent = 0
    for each in work:
        # People wait for what they were promised to be rid of, whatever else their project does.
        has_room = each.is_owed or all(in_hand[share] < settings.HEAVY_SHARE for share in each.shares)
        if not each.is_sent and has_room and each.send():
            in_hand.update(each.shares)
            sent += 1
    return sent


def send_project_changed(project_id: int) -> None:
    """Tell the clock, on commit, that the project may be able to take its next step; a lost message only delays it."""
    looks.look_at([project_id])
    changed = current_app.signature(settings.PROJECT_CHANGED_TASK, kwargs={"project_id": project_id})
    transaction.on_commit(changed.apply_async, robust=True)


def resend_stalled_work() -> int:
    """Send again what waits for long or was dropped by its worker, and what was never sent; return how many."""
    work = open_work()
    stalled = [each for each in work if each.is_sent and each.is_stalled]
    sent = 0
    if stalled and broker.may_have_lost(sum(each.is_sent for each in work)):
        for each in stalled:
            logger.info("%s %s is sent again", each.model._meta.model_name, each.key)
            sent += each.send()
    return sent + send_unsent(work)
