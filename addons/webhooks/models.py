"""Webhooks of a project and the messages sent to them."""

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models import Project


# Read by those who program the receiver, so in English.
class WebhookEvent(models.TextChoices):
    RELEASE = "release", "new release"
    BUDGET = "budget", "budget at 80 %"
    ROUND = "round", "round done"
    RETIRED = "retired", "release retired"
    CHANNEL = "channel", "channel moved"
    LIMIT = "limit", "limit changed"
    UPLOAD = "upload", "upload read or refused"
    GATE = "gate", "upload through the gate"
    SETTINGS = "settings", "settings or state changed"
    REPORT = "report", "question reported"
    REVIEW = "review", "answers wait for review"
    WAITING = "waiting", "project waits for a decision"
    FAILED = "failed", "work failed"
    MEMBER = "member", "member joined, paused or left"
    GUIDELINES = "guidelines", "new version of the guidelines"
    STUDY = "study", "study on a crowd platform moved on"
    REQUEST = "request", "request to a second manager"
    FORGOTTEN = "forgotten", "contributor forgotten"
    ARCHIVED = "archived", "project archived or taken out of the archive"
    FINISHED = "finished", "longer work done"


class DeliveryState(models.TextChoices):
    WAITING = "waiting", _("waiting")
    SENT = "sent", _("sent")
    GIVEN_UP = "given_up", _("given up")


class Webhook(models.Model):
    project = models.ForeignKey(Project, models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=500)
    events = models.JSONField(help_text="Names of the events, at least one.")
    event_since = models.JSONField(
        default=dict, help_text="Events chosen later, each with the moment from which on it is told."
    )
    # The secret is derived from this and the site's own key: neither the page nor the database can show it.
    salt = models.BinaryField(max_length=32)
    created_at = models.DateTimeField(auto_now_add=True)
    removed_at = models.DateTimeField(null=True, blank=True)
    told_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"webhook {self.pk} of {self.project_id}"

    def subscribed_since(self, event: str) -> datetime:
        """Return the moment from which on an event is told: nobody is told what happened before they asked."""
        later: str | None = self.event_since.get(event)
        return datetime.fromisoformat(later) if later else self.created_at


class WebhookDelivery(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=10, choices=WebhookEvent.choices)
    subject = models.CharField(max_length=120, help_text="Event and its subject; sent once.")
    body = models.TextField()
    state = models.CharField(max_length=10, choices=DeliveryState.choices, default=DeliveryState.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    url = models.CharField(max_length=500, blank=True, help_text="Where it was last sent.")
    next_at = models.DateTimeField(auto_now_add=True, db_index=True)
    # While its task waits for a worker.
    queued_until = models.DateTimeField(null=True, blank=True)
    answer = models.CharField(max_length=200, blank=True, help_text="Status or fault of the last attempt.")
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        constraints = (
            models.UniqueConstraint(fields=("webhook", "event", "subject"), name="webhooks_delivery_once"),
            models.CheckConstraint(
                name="webhooks_delivery_sent", condition=~Q(state="sent") | Q(sent_at__isnull=False)
            ),
        )

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook_id}"
