"""Table of shares of classes: each row is one ask, and what it released."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models import LeasedWork, Project
from learner.models.releases import ModelRelease
from learner.models.rounds import Round


class Grouping(models.TextChoices):
    WHOLE = "whole", _("the whole pool")
    UPLOAD = "upload", _("by upload")
    MONTH = "month", _("by month of the upload")
    COLUMN = "column", _("by a declared column")
    CONFIDENCE = "confidence", _("right answers, to abstain below a threshold")


class SharesReport(LeasedWork):
    """One ask for shares; what is declared here is public and was written before a record was read."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="shares_reports")
    number = models.PositiveIntegerField()
    block = models.ForeignKey(Round, models.PROTECT, related_name="+")
    release = models.ForeignKey(ModelRelease, models.PROTECT, null=True, blank=True, related_name="+")
    classes = models.JSONField(help_text="Names, as they were learned.")
    grouping = models.CharField(max_length=10, choices=Grouping.choices)
    column = models.CharField(max_length=200, blank=True, help_text="Declared column whose categories are groups.")
    groups = models.JSONField(help_text="Name and uploads of each group; no record is in two.")
    rate = models.FloatField(help_text="Public rate of the secret block.")
    accuracy = models.FloatField(null=True, help_text="Public guess of the model's; empty for labels alone.")
    events = models.JSONField(help_text="Events of counts on the sample and, with a model, over the pool.")
    reservation = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, null=True, blank=True, related_name="+")
    committed_entry = models.OneToOneField(
        "privacy.LedgerEntry", models.PROTECT, null=True, blank=True, related_name="+"
    )
    counts = models.JSONField(null=True, blank=True, help_text="Noisy counts of each event.")
    asked_by = models.CharField(max_length=150)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "number"), name="learner_shares_number"),
            models.UniqueConstraint(
                fields=("project",), condition=Q(state__in=("waiting", "running")), name="learner_shares_one_open"
            ),
            models.CheckConstraint(name="learner_shares_column", condition=Q(grouping="column") ^ Q(column="")),
            models.CheckConstraint(
                name="learner_shares_of_a_release", condition=~Q(grouping="confidence") | Q(release__isnull=False)
            ),
            models.CheckConstraint(
                name="learner_shares_paid",
                condition=Q(state="done", committed_entry__isnull=False, counts__isnull=False)
                | (~Q(state="done") & Q(committed_entry=None, counts=None)),
            ),
        )

    def __str__(self) -> str:
        return f"shares {self.number} of {self.project_id}"
