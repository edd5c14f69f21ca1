"""Roles of people and groups, tokens and repeated writes."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models.numbered import NumberedModel
from annotation.models.projects import Project
from annotation.models.quality import PauseReason


class Role(models.TextChoices):
    ANNOTATOR = "annotator", _("annotator")
    MANAGER = "manager", _("manager")
    ENGINEER = "engineer", _("engineer")
    REVIEWER = "reviewer", _("reviewer")


class Membership(NumberedModel):
    project = models.ForeignKey(Project, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    guidelines_seen = models.PositiveIntegerField(
        null=True, blank=True, help_text="Version the person knows; null before the first question."
    )
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_reason = models.CharField(max_length=10, choices=PauseReason.choices, blank=True)
    judged_from = models.DateTimeField(null=True, blank=True, help_text="Earlier checks no longer count.")
    is_direct = models.BooleanField(
        default=True, db_default=True, help_text="Given to this person; else only groups give it."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "user", "role"), name="annotation_membership_once"),
            models.CheckConstraint(
                name="annotation_membership_known",
                condition=Q(role__in=("annotator", "manager", "engineer", "reviewer")),
            ),
        )


class ApiToken(models.Model):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class GroupRole(NumberedModel):
    group = models.ForeignKey(Group, models.CASCADE, related_name="roles", db_index=False)
    project = models.ForeignKey("annotation.Project", models.CASCADE, related_name="group_roles")
    role = models.CharField(max_length=10)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("group", "project", "role"), name="annotation_grouprole_once"),
            models.CheckConstraint(
                name="annotation_grouprole_known",
                condition=Q(role__in=("annotator", "manager", "engineer", "reviewer")),
            ),
        )


class OutgoingKey(NumberedModel):
    """Sealed key from which secrets of webhooks, mailed invitations and studies are derived."""

    sealed = models.BinaryField()
    ends_at = models.DateTimeField(null=True, help_text="Set once another key took its place.")


class IdempotentAnswer(NumberedModel):
    key = models.BinaryField(primary_key=True, max_length=32)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    request_digest = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField()
    body = models.TextField(blank=True)
    created_at = models.DateTimeField(db_index=True)
