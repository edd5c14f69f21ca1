"""Heartbeats of workers, periodic tasks that wait for one, sessions, and counts of tries."""

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models

from annotation.models.numbered import NumberedModel


class Heartbeat(models.Model):
    name = models.CharField(primary_key=True, max_length=80)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class SentTask(models.Model):
    name = models.CharField(primary_key=True, max_length=80)
    sent_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class CachedCount(NumberedModel):
    """Django's cache, in which the sign-in library counts; unlogged, and swept by a clock."""

    cache_key = models.CharField(primary_key=True, max_length=255)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)


class Session(AbstractBaseSession):
    """A session under the digest of its secret, whose it is, and when the label pages saw it last."""

    # Not checked by the database: a session may outlive its person by the request that deletes them.
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, db_constraint=False)
    seen_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return "session"
