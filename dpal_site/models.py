"""What the site knows of itself: that its workers live."""

from django.db import models


class Heartbeat(models.Model):
    """The last sign of life of one part of the site, written by a task that went through clock, broker and worker."""

    name = models.CharField(primary_key=True, max_length=80)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
