"""Retention, forgetting of contributors and deletion of projects."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotation.models.numbered import NumberedModel

# Nobody shall be able to wipe away at once what they did yesterday.
FEWEST_ACTION_DAYS = 90
FEWEST_DAYS = 1


class Retention(NumberedModel):
    project = models.OneToOneField("annotation.Project", models.CASCADE, related_name="retention")
    records_days = models.PositiveIntegerField(null=True, blank=True, help_text="From the upload on.")
    answers_days = models.PositiveIntegerField(null=True, blank=True, help_text="From the last answer on.")
    comments_days = models.PositiveIntegerField(
        null=True, blank=True, default=365, help_text="From when they are settled."
    )
    uploads_days = models.PositiveIntegerField(null=True, blank=True, default=90, help_text="From the upload on.")
    actions_days = models.PositiveIntegerField(
        null=True, blank=True, default=1095, help_text="From the action on, at least 90."
    )

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="annotation_retention_days",
                condition=(Q(records_days=None) | Q(records_days__gte=FEWEST_DAYS))
                & (Q(answers_days=None) | Q(answers_days__gte=FEWEST_DAYS))
                & (Q(comments_days=None) | Q(comments_days__gte=FEWEST_DAYS))
                & (Q(uploads_days=None) | Q(uploads_days__gte=FEWEST_DAYS)),
            ),
            models.CheckConstraint(
                name="annotation_retention_actions",
                condition=Q(actions_days=None) | Q(actions_days__gte=FEWEST_ACTION_DAYS),
            ),
        )


class SlotMark(NumberedModel):
    project = models.ForeignKey("annotation.Project", models.CASCADE, related_name="slot_marks", db_index=False)
    day = models.DateField()
    slots = models.BigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("project", "day"), name="annotation_slotmark_once"),)


class Forgetting(NumberedModel):
    """Request to forget a contributor; `reference` is a keyed digest of the name."""

    project = models.ForeignKey("annotation.Project", models.PROTECT, related_name="forgettings", db_index=False)
    job = models.OneToOneField("annotation.Job", models.PROTECT, related_name="forgetting")
    contributor = models.BinaryField(max_length=16, null=True, help_text="The pseudonym, until nothing of it is left.")
    reference = models.CharField(max_length=32)
    actor = models.CharField(max_length=150)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="annotation_forgetting_forgets",
                condition=Q(contributor__isnull=False, finished_at=None)
                | Q(contributor=None, finished_at__isnull=False),
            ),
            models.UniqueConstraint(
                fields=("project", "reference"), condition=Q(finished_at=None), name="annotation_forgetting_once"
            ),
        )
        indexes = (models.Index(fields=("project", "id"), name="annotation_forgetting_project"),)


class Deletion(NumberedModel):
    project = models.OneToOneField("annotation.Project", models.PROTECT, related_name="deletion")
    job = models.OneToOneField("annotation.Job", models.PROTECT, related_name="deletion")
    keep_releases = models.BooleanField(help_text="Whether released models stay, or only that they were released.")
    actor = models.CharField(max_length=150)
    created_at = models.DateTimeField(db_default=Now())
