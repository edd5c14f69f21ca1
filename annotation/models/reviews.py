"""Turns of people who review: who looks at which question, for how long, and what they decided."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.numbered import NumberedModel
from annotation.models.projects import Project
from annotation.models.questions import Query


class ReviewState(models.TextChoices):
    LEASED = "leased", _("leased")
    SETTLED = "settled", _("decided")
    RETURNED = "returned", _("sent back")
    SET_ASIDE = "set_aside", _("set aside")
    SKIPPED = "skipped", _("skipped")
    ENDED = "ended", _("ended without a decision")


class Review(NumberedModel):
    """A lease of one question to one reviewer, and how it ended."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="reviews", db_index=False)
    query = models.ForeignKey(Query, models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    state = models.CharField(max_length=9, choices=ReviewState.choices, default=ReviewState.LEASED)
    leased_until = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("query",), condition=Q(state="leased"), name="annotation_review_one_reads"),
            models.UniqueConstraint(
                fields=("reviewer", "project"), condition=Q(state="leased"), name="annotation_review_one_lease"
            ),
            models.CheckConstraint(
                name="annotation_review_finished", condition=Q(state="leased") ^ Q(finished_at__isnull=False)
            ),
        )
        indexes = (models.Index(fields=("project", "reviewer", "finished_at"), name="annotation_review_done"),)
