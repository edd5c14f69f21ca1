"""What workers hand to each other while several of them make one feature file."""

import uuid

from django.db import models

from annotation.models import Dataset


class FeaturePart(models.Model):
    """A range of rows whose features one worker makes, in a file of its own until all are put together."""

    build = models.UUIDField(help_text="Follows from the file they are parts of, so that whoever makes it shares them.")
    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="feature_parts")
    version = models.CharField(max_length=120, help_text="Of the featuriser.")
    number = models.PositiveIntegerField()
    first_row = models.BigIntegerField()
    stop_row = models.BigIntegerField()
    name = models.UUIDField(default=uuid.uuid4, help_text="Of its file.")
    done = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("build", "number"), name="learner_feature_part_once"),)

    def __str__(self) -> str:
        return f"feature part {self.pk}"
