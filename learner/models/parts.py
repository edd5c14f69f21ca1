"""What workers hand to each other while several of them make one feature file."""

import uuid

from django.db import models

from annotation.models import Dataset


class FeaturePart(models.Model):
    """A range of rows whose features one worker makes, in a file of its own until all are put together."""

    build = models.UUIDField(help_text="Whoever puts the parts together; two who do so have parts of their own.")
    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="feature_parts")
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
