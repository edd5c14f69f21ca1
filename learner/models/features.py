"""Files of feature vectors."""

from django.db import models

from annotation.models import Dataset


class FeatureMatrix(models.Model):
    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="feature_matrices")
    version = models.CharField(max_length=120)
    file = models.FileField(max_length=300)
    sha256 = models.CharField(max_length=64)
    rows = models.BigIntegerField()
    dimension = models.PositiveIntegerField()
    emptied = models.BigIntegerField(default=0, help_text="Rows that are zero because their slots are empty.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "feature matrices"
        constraints = (models.UniqueConstraint(fields=("dataset", "version"), name="learner_matrix_one_per_version"),)

    def __str__(self) -> str:
        return f"features {self.version} of {self.dataset_id}"
