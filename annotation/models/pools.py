"""The catalogue of pools that lie in storage as columns: which file holds which rows, and the digest of its bytes."""

from django.db import models
from django.db.models import F, Q

from annotation.models.data import Dataset


class PoolPart(models.Model):
    """One file of columns with some rows of a crowd's pool; they stand nowhere else, and only emptying rewrites them.

    A rewritten file has another name, another digest and more empty slots; its place and its rows stay.
    """

    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="pool_parts", db_index=False)
    number = models.PositiveIntegerField()
    first_row = models.BigIntegerField(help_text="Rows of the upload in all parts before it.")
    row_count = models.PositiveIntegerField()
    emptied_count = models.PositiveIntegerField(default=0, help_text="Rows of it that are empty slots.")
    named = models.BooleanField(help_text="A row of it names a contributor, by pseudonym.")
    file = models.CharField(max_length=300)
    sha256 = models.CharField(max_length=64)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("dataset", "number"), name="annotation_poolpart_once"),
            models.UniqueConstraint(fields=("file",), name="annotation_poolpart_file"),
            models.CheckConstraint(
                name="annotation_poolpart_rows",
                condition=Q(row_count__gte=1, first_row__gte=0, emptied_count__lte=F("row_count"))
                & (Q(named=False) | Q(emptied_count__lt=F("row_count"))),
            ),
            models.CheckConstraint(name="annotation_poolpart_digest", condition=Q(sha256__regex=r"^[0-9a-f]{64}$")),
        )

    def __str__(self) -> str:
        return f"pool part {self.pk}"
