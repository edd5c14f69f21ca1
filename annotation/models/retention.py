"""Retention periods of a project."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

# Nobody shall be able to wipe away at once what they did yesterday.
FEWEST_ACTION_DAYS = 90
FEWEST_DAYS = 1


class Retention(models.Model):
    project = models.OneToOneField("annotation.Project", models.CASCADE, related_name="retention")
    records_days = models.PositiveIntegerField(null=True, blank=True, help_text=_("From the upload on."))
    answers_days = models.PositiveIntegerField(null=True, blank=True, help_text=_("From the last answer on."))
    comments_days = models.PositiveIntegerField(
        null=True, blank=True, default=365, help_text=_("From when they are settled.")
    )
    uploads_days = models.PositiveIntegerField(null=True, blank=True, default=90, help_text=_("From the upload on."))
    actions_days = models.PositiveIntegerField(
        null=True, blank=True, default=1095, help_text=_("From the action on, at least 90.")
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

    def __str__(self) -> str:
        return f"retention of {self.project_id}"


class SlotMark(models.Model):
    project = models.ForeignKey("annotation.Project", models.CASCADE, related_name="slot_marks", db_index=False)
    day = models.DateField()
    slots = models.BigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("project", "day"), name="annotation_slotmark_once"),)

    def __str__(self) -> str:
        return f"slots of {self.project_id} on {self.day}"
