"""Answers of the REST interface that a repeated write is given again."""

from django.conf import settings
from django.db import models


class IdempotentAnswer(models.Model):
    """Answer to a write with an Idempotency-Key, stored with what it did."""

    key = models.BinaryField(primary_key=True, max_length=32)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    request_digest = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField()
    body = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    def __str__(self) -> str:
        return f"answer of {self.created_at}"
