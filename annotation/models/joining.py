"""Invitation links, links for crowd platforms, and who came by them."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models.numbered import NumberedModel


class Invitation(NumberedModel):
    """A link into a project, stored as a digest, limited in time and number."""

    project = models.ForeignKey("annotation.Project", models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10)
    digest = models.CharField(max_length=64, unique=True)
    note = models.CharField(max_length=80, blank=True)
    maximum_uses = models.PositiveIntegerField(default=1)
    uses = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="annotation_invitation_uses", condition=Q(uses__lte=F("maximum_uses"))),
        )


class Platform(models.TextChoices):
    PROLIFIC = "prolific", _("Prolific")
    MECHANICAL_TURK = "mturk", _("Mechanical Turk")


class CrowdLink(NumberedModel):
    project = models.ForeignKey("annotation.Project", models.CASCADE, related_name="crowd_links")
    digest = models.CharField(max_length=64, unique=True)
    platform = models.CharField(max_length=10, choices=Platform.choices)
    study = models.CharField(max_length=64, blank=True, help_text="Study or HIT the link is for; empty allows any.")
    answers_wanted = models.PositiveIntegerField()
    completion_code = models.CharField(max_length=40)
    maximum_participants = models.PositiveIntegerField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    signed = models.BooleanField(default=False, help_text="Whether the platform must sign who it sends.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="annotation_crowdlink_wanted", condition=Q(answers_wanted__gte=1)),
            models.CheckConstraint(
                name="annotation_crowdlink_signed", condition=Q(signed=False) | Q(platform=Platform.PROLIFIC)
            ),
        )


class PlatformKeys(NumberedModel):
    platform = models.CharField(max_length=10, choices=Platform.choices, unique=True)
    keys = models.JSONField(default=list)
    fetched_at = models.DateTimeField(null=True, blank=True)
    asked_at = models.DateTimeField(null=True, blank=True)
    is_wanted = models.BooleanField(default=False, help_text="Whether a key was named that is not among them.")

    class Meta:
        verbose_name_plural = "platform keys"


class CrowdParticipant(NumberedModel):
    """Somebody a platform sent; the platform's id is kept as a keyed hash only."""

    link = models.ForeignKey(CrowdLink, models.PROTECT, related_name="participants")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="crowd_participations")
    pid_digest = models.BinaryField(max_length=16)
    completed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("link", "pid_digest"), name="annotation_participant_once_per_link"),
        )


class RateCount(NumberedModel):
    key = models.CharField(max_length=64, primary_key=True)
    tries = models.PositiveIntegerField()
    next_at = models.DateTimeField(null=True, help_text="Of guesses at a password: when the next one is taken.")
    ends_at = models.DateTimeField(db_index=True)
