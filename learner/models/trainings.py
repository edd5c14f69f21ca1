"""Trainings and the public models they begin with."""

import uuid

from django.db import models
from django.db.models import Q

from annotation.models import Dataset, LeasedWork, Project
from learner.models.rounds import Round
from privacy.message_fields import MessageField


class WarmStart(models.Model):
    """The model the first rounds score with and trainings lean on."""

    dataset = models.OneToOneField(Dataset, models.PROTECT, related_name="warm_start")
    weights = models.JSONField(help_text="Coefficients, as in weights.json.")
    features_version = models.CharField(max_length=120)
    examples = models.PositiveIntegerField(help_text="Of private ones the slots, whose number is public.")
    entry = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, related_name="+", null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"start from dataset {self.dataset_id}"


class TrainingRun(LeasedWork):
    """One private training; a crashed attempt stays charged and the next attempt reserves anew."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="training_runs")
    version = models.PositiveIntegerField(help_text="Version the release will carry.")
    reservation = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, null=True, blank=True, related_name="+")
    block = models.ForeignKey(Round, models.PROTECT, null=True, blank=True, related_name="training_runs")
    stream_batches = models.PositiveIntegerField(
        null=True, blank=True, help_text="Batches of a stream behind the version; null in a pool."
    )
    last_consensus_id = models.BigIntegerField(help_text="Labels up to this consensus are used.")
    labels_used = models.PositiveIntegerField()
    unagreed = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Questions given up without an agreed answer before it began."
    )
    progress_done = models.PositiveIntegerField(db_default=0)
    progress_total = models.PositiveIntegerField(null=True, blank=True)
    message = MessageField(blank=True, help_text="What the attempt does now.")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("project",), condition=Q(state__in=("waiting", "running")), name="learner_training_one_open"
            ),
            models.UniqueConstraint(
                fields=("project", "version"), condition=~Q(state="failed"), name="learner_training_version"
            ),
        )

    def __str__(self) -> str:
        return f"training {self.id}"
