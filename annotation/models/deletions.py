"""Projects that were deleted: what a manager decided, and how far erasing is. The row itself is a tombstone."""

from django.db import models
from django.db.models.functions import Now


class Deletion(models.Model):
    project = models.OneToOneField("annotation.Project", models.PROTECT, related_name="deletion")
    job = models.OneToOneField("annotation.Job", models.PROTECT, related_name="deletion")
    keep_releases = models.BooleanField(help_text="Whether released models stay, or only that they were released.")
    actor = models.CharField(max_length=150)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"deletion of {self.project_id}"
