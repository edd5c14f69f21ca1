"""Runs of a gate, and what a survey says of an upload."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.data import Dataset
from annotation.models.jobs import Job
from annotation.models.numbered import NumberedModel
from annotation.models.projects import Project


class GateState(models.TextChoices):
    RUNNING = "running", _("running")
    COMMITTED = "committed", _("committed")
    LOST = "lost", _("lost: the attempt crashed and stays charged")


class GateRun(NumberedModel):
    """One attempt of the k-anonymity gate over one dataset; at most one commits."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="gate_runs")
    dataset = models.ForeignKey(Dataset, models.PROTECT, related_name="gate_runs")
    state = models.CharField(max_length=10, choices=GateState.choices, default=GateState.RUNNING)
    reservation = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, related_name="+")
    committed_entry = models.OneToOneField(
        "privacy.LedgerEntry", models.PROTECT, related_name="+", null=True, blank=True
    )
    passed_count = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("dataset",), condition=Q(state="committed"), name="annotation_gate_once_per_dataset"
            ),
            models.CheckConstraint(
                name="annotation_gate_committed",
                condition=Q(
                    state="committed", committed_entry__isnull=False, passed_count__isnull=False, passed_count__gte=0
                )
                | (~Q(state="committed") & Q(committed_entry=None, passed_count=None)),
            ),
        )


class Survey(NumberedModel):
    """Text frequencies of an upload for the planner; as private as the upload."""

    dataset = models.OneToOneField(Dataset, models.CASCADE, related_name="survey")
    job = models.OneToOneField(Job, models.CASCADE, related_name="survey")
    normalizer = models.CharField(max_length=4)
    frequencies = models.JSONField(null=True, blank=True)
