"""The catalogue of pools that lie in columns: in files of the site, or in a table that stays where it is."""

from django.db import models
from django.db.models import F, Q

from annotation.models.data import Dataset
from annotation.models.numbered import NumberedModel


class PoolPart(NumberedModel):
    """One file of columns with rows of a crowd's pool; only emptying rewrites it, under another name."""

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


class PoolSource(NumberedModel):
    """A table of somebody else that is a crowd's pool; `snapshot` is empty until its files were read."""

    dataset = models.OneToOneField(Dataset, models.CASCADE, primary_key=True, related_name="source")
    address = models.CharField(max_length=1000)
    secret = models.BinaryField(max_length=32, help_text="Keys the snapshot's id, and is shown to nobody.")
    snapshot = models.CharField(max_length=64, blank=True)
    format_snapshot = models.JSONField(
        null=True,
        help_text="Of a format with snapshots: the one that was asked for; then also its table and the ids of columns.",
    )

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="annotation_poolsource_address", condition=Q(address__regex=r"^(file:///|s3://[^/])")
            ),
            models.CheckConstraint(
                name="annotation_poolsource_digest", condition=Q(snapshot__regex=r"^([0-9a-f]{64})?$")
            ),
        )

    @property
    def snapshot_number(self) -> int | None:
        return None if self.format_snapshot is None else self.format_snapshot["snapshot"]


class SourceFile(NumberedModel):
    source = models.ForeignKey(PoolSource, models.CASCADE, related_name="files", db_index=False)
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=1000, blank=True, help_text="Below the address; empty where that is the file.")
    first_row = models.BigIntegerField(help_text="Rows of the table in all files before it.")
    row_count = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, help_text="Of its name, size, version and footer, none of its pages.")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("source", "number"), name="annotation_sourcefile_once"),
            models.UniqueConstraint(fields=("source", "name"), name="annotation_sourcefile_name"),
            models.CheckConstraint(name="annotation_sourcefile_rows", condition=Q(row_count__gte=0, first_row__gte=0)),
            models.CheckConstraint(name="annotation_sourcefile_digest", condition=Q(sha256__regex=r"^[0-9a-f]{64}$")),
        )
