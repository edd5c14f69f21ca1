"""The worker's jobs: what was asked for, who holds it, and how it ended."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.numbered import NumberedModel
from annotation.models.projects import Project
from privacy.message_fields import MessageField


class WorkState(models.TextChoices):
    WAITING = "waiting", _("waiting")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")


# Work that somebody does or will do.
UNFINISHED = (WorkState.WAITING, WorkState.RUNNING)
# The kind of the job of a stream's one dataset, which no file was read for.
STREAM_JOB = "stream"


class LeasedWork(models.Model):
    """Long work under a lease; a lapsed lease lets another worker take over."""

    state = models.CharField(max_length=10, choices=WorkState.choices, default=WorkState.WAITING)
    attempt = models.PositiveSmallIntegerField(default=0)
    leased_until = models.DateTimeField(null=True, blank=True)
    error = MessageField(blank=True)
    started_at = models.DateTimeField(null=True, blank=True, help_text="When the newest attempt began.")
    cancelled_by = models.CharField(max_length=150, db_default="", blank=True, help_text="Who asked it to stop.")
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


class Job(LeasedWork):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(
        Project, models.CASCADE, related_name="jobs", null=True, help_text="None for a project not opened yet."
    )
    kind = models.CharField(max_length=30)
    progress_done = models.BigIntegerField(default=0)
    progress_total = models.BigIntegerField(null=True, blank=True)
    message = MessageField(blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="annotation_job_progress", condition=Q(progress_done__gte=0)),
            # A plan of a project that is not opened yet is nobody else's; whoever works for a project is its own.
            models.CheckConstraint(
                name="annotation_job_project", condition=Q(project__isnull=False) | Q(kind="simulate")
            ),
            models.CheckConstraint(
                name="annotation_job_finished", condition=Q(state__in=("done", "failed")) ^ Q(finished_at=None)
            ),
        )
        indexes = (
            models.Index(
                fields=("leased_until",), condition=~Q(state__in=("done", "failed")), name="annotation_job_open"
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class DueLook(NumberedModel):
    """A time from which the clock looks at a project: something changed, or a step of its own is due then."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    due_at = models.DateTimeField()


class ProjectMove(NumberedModel):
    """Times at which the clock last looked at a project that may have moved, and at which its people were told."""

    project = models.OneToOneField(Project, models.CASCADE, primary_key=True, related_name="move")
    moved_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)
