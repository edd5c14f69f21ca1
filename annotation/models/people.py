"""Roles of people and tokens."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.projects import Project
from annotation.models.quality import PauseReason


class Role(models.TextChoices):
    ANNOTATOR = "annotator", _("annotator")
    MANAGER = "manager", _("manager")
    ENGINEER = "engineer", _("engineer")
    REVIEWER = "reviewer", _("reviewer")


class Membership(models.Model):
    project = models.ForeignKey(Project, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    guidelines_seen = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Version the person knows; null before the first question.")
    )
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_reason = models.CharField(max_length=10, choices=PauseReason.choices, blank=True)
    judged_from = models.DateTimeField(null=True, blank=True, help_text=_("Earlier checks no longer count."))
    is_direct = models.BooleanField(
        default=True, db_default=True, help_text=_("Given to this person; else only groups give it.")
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

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"


class ApiToken(models.Model):
    """A bearer token of one person, stored only as a digest."""

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
