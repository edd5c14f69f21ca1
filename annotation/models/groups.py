"""Roles that Django's groups give; `Membership` repeats them and the database compares both."""

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotation.models.numbered import NumberedModel


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
