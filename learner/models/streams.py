"""Streams: what they learned so far, in batches."""

from django.db import models
from django.db.models import F, Q

from annotation.models import Project


class Stream(models.Model):
    """Where a stream stands: every record before `next_slot` was examined, once. Whoever moves it on locks this row."""

    project = models.OneToOneField(Project, models.CASCADE, related_name="stream")
    attempt = models.PositiveSmallIntegerField(default=1, help_text="Which attempt to pay for the stream.")
    entry = models.OneToOneField(
        "privacy.LedgerEntry",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The committed entry that pays for all of it; nothing is examined before there is one.",
    )
    next_slot = models.BigIntegerField(default=0)
    batches_closed = models.PositiveIntegerField(default=0)
    open_slots = models.JSONField(default=list, help_text="Selected slots of the batch that is still open.")
    batches_used = models.PositiveIntegerField(default=0, help_text="Batches that made their update.")
    batches_released = models.PositiveIntegerField(default=0, help_text="Batches the newest release learned from.")
    learner_state = models.JSONField(null=True, blank=True, help_text="Weights after the last update.")

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="learner_stream_in_order",
                condition=Q(batches_used__lte=F("batches_closed"), batches_released__lte=F("batches_used")),
            ),
            models.CheckConstraint(
                name="learner_stream_paid",
                condition=Q(entry__isnull=False) | Q(next_slot=0, batches_closed=0, learner_state=None),
            ),
        )

    def __str__(self) -> str:
        return f"stream of {self.project_id}"


class StreamBatch(models.Model):
    """Input of one update: the questions whose `round_number` is its number."""

    stream = models.ForeignKey(Stream, models.CASCADE, related_name="batches", db_index=False)
    number = models.PositiveIntegerField()
    end = models.BigIntegerField(help_text="The first slot after it.")
    questions = models.PositiveIntegerField(help_text="Records selected; secret where windows are hidden.")
    closes_at = models.DateTimeField(help_text="When its update is made, whatever is answered.")

    class Meta:
        verbose_name_plural = "stream batches"
        constraints = (models.UniqueConstraint(fields=("stream", "number"), name="learner_stream_batch_once"),)

    def __str__(self) -> str:
        return f"batch {self.number} of {self.stream_id}"
