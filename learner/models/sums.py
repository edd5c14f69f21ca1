"""Table of noisy sums: blocks of secret samples are disjoint, so the next one adds its own to them."""

from django.db import models


class ReleasedSums(models.Model):
    """All noisy sums that a released model was made of: paid for, computed with for nothing, and never rewritten."""

    run = models.OneToOneField("learner.TrainingRun", models.CASCADE, related_name="sums")
    entry = models.OneToOneField(
        "privacy.LedgerEntry", models.PROTECT, related_name="+", help_text="What paid for the newest block of them."
    )
    shape = models.CharField(max_length=64, help_text="Digest of features, classes and the constant column.")
    moments = models.BinaryField(null=True, help_text="Numbers of eight bytes, row by row; none for class sums.")
    class_sums = models.BinaryField()
    dimension = models.PositiveIntegerField()
    moment_variance = models.FloatField()
    class_variance = models.FloatField()

    class Meta:
        verbose_name_plural = "released sums"

    def __str__(self) -> str:
        return f"sums of run {self.run_id}"
