"""Contributors who asked to be forgotten; whoever they were is not kept."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotation.models.numbered import NumberedModel


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
