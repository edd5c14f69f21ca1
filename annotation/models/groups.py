"""Roles of Django's groups in projects.

What a group gives is also written into `Membership`, so that one table answers who has a role; the database refuses, at
the end of each transaction, a membership that its sources do not account for.
"""

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotation.models.numbered import NumberedModel


class GroupRole(NumberedModel):
    """The role everybody of a group has in one project."""

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
