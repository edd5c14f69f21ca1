"""Rounds of questions, and what a secret one drew and looked at."""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotation.models import Dataset, Project, Selection, WorkState
from privacy.models.messages import MessageField


class Round(models.Model):
    """One private choice of questions."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="rounds")
    number = models.PositiveIntegerField()
    strategy = models.CharField(max_length=30, choices=Selection.choices)
    model = models.ForeignKey("ModelRelease", models.PROTECT, null=True, blank=True, related_name="rounds")
    state = models.CharField(max_length=10, choices=WorkState.choices, default=WorkState.WAITING)
    attempt = models.PositiveSmallIntegerField(default=0)
    leased_until = models.DateTimeField(null=True, blank=True)
    reservation = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, null=True, blank=True, related_name="+")
    committed_entry = models.OneToOneField(
        "privacy.LedgerEntry", models.PROTECT, null=True, blank=True, related_name="+"
    )
    block = models.PositiveSmallIntegerField(null=True, blank=True, help_text=_("Which secret block, from 1."))
    closes_at = models.DateTimeField(null=True, blank=True, help_text=_("When a secret block is trained on."))
    requested = models.PositiveIntegerField(help_text=_("Questions wanted; of a secret block, records in the pool."))
    selected = models.PositiveIntegerField(null=True, blank=True)
    progress_done = models.PositiveIntegerField(db_default=0)
    progress_total = models.PositiveIntegerField(null=True, blank=True)
    message = MessageField(blank=True, help_text=_("What the attempt does now."))
    error = MessageField(blank=True)
    started_at = models.DateTimeField(null=True, blank=True, help_text=_("When the newest attempt began."))
    cancelled_by = models.CharField(max_length=150, db_default="", blank=True, help_text=_("Who asked it to stop."))
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "number"), name="learner_round_number"),
            models.UniqueConstraint(
                fields=("project",), condition=Q(state__in=("waiting", "running")), name="learner_round_one_open"
            ),
            models.CheckConstraint(
                name="learner_round_done",
                condition=~Q(state="done") | Q(committed_entry__isnull=False, selected__lte=F("requested")),
            ),
            models.UniqueConstraint(
                fields=("project", "block"), condition=~Q(state="failed"), name="learner_round_block_once"
            ),
            # A block that is asked about has a public time at which it closes.
            models.CheckConstraint(
                name="learner_round_block_secret",
                condition=Q(strategy="secret_sample", block__isnull=False, block__gte=1)
                & (~Q(state="done") | Q(closes_at__isnull=False))
                | ~Q(strategy="secret_sample") & Q(block=None, closes_at=None),
            ),
        )

    def __str__(self) -> str:
        return f"round {self.number} of {self.project_id}"


class SecretDraw(models.Model):
    """The secret coins of one upload, drawn once: which block asks about which record, if any does."""

    dataset = models.OneToOneField(Dataset, models.CASCADE, related_name="secret_draw")
    blocks = models.BinaryField(help_text=_("One byte for each row: its block from 1, or 0."))
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"coins of dataset {self.dataset_id}"


class ScreenLooks(models.Model):
    """How often a screen has looked at each record of an upload; it follows from the choices, which are visible."""

    dataset = models.OneToOneField(Dataset, models.CASCADE, related_name="screen_looks")
    looks = models.BinaryField(help_text=_("One byte for each row."))
    left = models.BigIntegerField(default=0, help_text=_("Records not asked about that may still be looked at."))
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"looks at dataset {self.dataset_id}"
