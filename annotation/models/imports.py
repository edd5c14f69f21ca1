"""Uploads that wait for a look at their first rows, and files that several workers read."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models.numbered import NumberedModel
from privacy.message_fields import MessagesInField


class ImportPart(NumberedModel):
    """A piece of a file that one worker reads; its rows are unused until the whole upload is ready."""

    dataset = models.ForeignKey("annotation.Dataset", models.CASCADE, related_name="import_parts", db_index=False)
    number = models.PositiveIntegerField()
    first = models.BigIntegerField(help_text="Byte, or row group of a Parquet file.")
    stop = models.BigIntegerField()
    row_count = models.BigIntegerField(null=True, help_text="Rows that can be used; null until they are counted.")
    line_count = models.BigIntegerField(null=True)
    unpacked_bytes = models.BigIntegerField(default=0)
    bad_row_count = models.BigIntegerField(default=0)
    bad_row_report = MessagesInField(
        default=list, inside="$[*].reason", help_text="Lines are counted from the beginning of the part."
    )
    compared = models.JSONField(default=list, help_text="Data of another role that its rows were compared with.")
    shared = models.BooleanField(default=False, help_text="A row of it stands in those data.")
    pool_files = models.JSONField(
        default=list, help_text="Files that hold its rows: name, digest, rows, whether they name somebody."
    )
    stored = models.BooleanField(default=False)
    odd = models.BooleanField(default=False, help_text="It cannot be read by itself; the file is read in one piece.")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("dataset", "number"), name="annotation_import_part_once"),
            models.CheckConstraint(
                name="annotation_import_part_counted",
                condition=Q(row_count=None, line_count=None, stored=False)
                | Q(row_count__isnull=False, line_count__isnull=False),
            ),
        )


class UploadDraft(NumberedModel):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey("annotation.Project", models.CASCADE, related_name="upload_drafts")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    upload = models.FileField(max_length=300)
    name = models.CharField(max_length=200)
    role = models.CharField(max_length=13)
    bad_rows = models.CharField(max_length=12)
    start_epsilon = models.FloatField(null=True, blank=True)
    mapping = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)


class OpeningDraft(NumberedModel):
    """A project that is not opened yet: what was typed, and the files it would begin with."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    preset = models.CharField(max_length=40)
    typed = models.JSONField(default=dict)
    pool = models.FileField(max_length=300, blank=True)
    public = models.FileField(max_length=300, blank=True)
    files = models.JSONField(default=dict, help_text="Of each file its name, how it is written, and its columns.")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
