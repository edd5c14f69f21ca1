"""Runs of a gate with the parts and pieces they are worked off in, and what a survey of an output says."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.data import Dataset
from annotation.models.jobs import Job
from annotation.models.projects import Project


class GateState(models.TextChoices):
    """How an attempt to pass a dataset through the gate ended."""

    RUNNING = "running", _("running")
    COMMITTED = "committed", _("committed")
    LOST = "lost", _("lost: the attempt crashed and stays charged")


class GateRun(models.Model):
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

    def __str__(self) -> str:
        return f"gate run {self.pk}"


class GateStage(models.TextChoices):
    """What a worker does with its part of an upload: one stage begins when all parts of the one before are done."""

    ROWS = "rows", _("digest a range of rows")
    PEOPLE = "people", _("cap a share of the contributors")
    TEXTS = "texts", _("count a share of the texts")
    PASSED = "passed", _("put together what reaches the minimum")


class GatePart(models.Model):
    """What one worker does for a running attempt: a range of rows, or a share of contributors or texts by hash.

    The table is unlogged, so no archive or replica ever holds it, and its rows go when the attempt ends.
    """

    run = models.ForeignKey(GateRun, models.CASCADE, related_name="parts", db_index=False)
    stage = models.CharField(max_length=10, choices=GateStage.choices)
    number = models.PositiveIntegerField()
    first_row = models.BigIntegerField(default=0)
    row_count = models.BigIntegerField(default=0)
    salt = models.BinaryField(max_length=32, help_text=_("Gives the attempt's coins, together with the site's secret."))
    done = models.BooleanField(default=False)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("run", "stage", "number"), name="annotation_gate_part_once"),)

    def __str__(self) -> str:
        return f"gate part {self.pk}"


class GatePiece(models.Model):
    """What one part hands to a part of the next stage; as private as the records, unlogged, gone once it is read."""

    run = models.ForeignKey(GateRun, models.CASCADE, related_name="pieces", db_index=False)
    stage = models.CharField(max_length=10, choices=GateStage.choices, help_text=_("The stage that reads it."))
    number = models.PositiveIntegerField(help_text=_("The part that reads it."))
    source = models.PositiveIntegerField(help_text=_("The part that made it."))
    content = models.BinaryField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("run", "stage", "number", "source"), name="annotation_gate_piece_once"),
        )

    def __str__(self) -> str:
        return f"gate piece {self.pk}"


class Survey(models.Model):
    """How often texts are said in a whole upload, for a manager's plan; as private as the upload, and gone with it."""

    dataset = models.OneToOneField(Dataset, models.CASCADE, related_name="survey")
    job = models.OneToOneField(Job, models.CASCADE, related_name="survey")
    normalizer = models.CharField(max_length=4)
    frequencies = models.JSONField(null=True, blank=True)

    def __str__(self) -> str:
        return f"survey of dataset {self.dataset_id}"
