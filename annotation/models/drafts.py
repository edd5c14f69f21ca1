"""Uploads that wait for a look at their first rows."""

import uuid

from django.conf import settings
from django.db import models


class UploadDraft(models.Model):
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

    def __str__(self) -> str:
        return f"draft {self.pk}"
