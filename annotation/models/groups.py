"""Groups of people: who is in them, and which roles they bring in which projects.

What a group gives is also written into `Membership`, so that whoever asks for a role looks into one table; the database
refuses, at the end of each transaction, a membership that its sources do not account for.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Now
from django.utils.translation import gettext_lazy as _

from annotation.models.numbered import NumberedModel


class PeopleGroup(models.Model):
    """People who come and go together, kept by the administrators of the site."""

    name = models.CharField(max_length=80, verbose_name=_("name"))
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(Lower("name"), name="annotation_group_name_once"),
            models.CheckConstraint(name="annotation_group_named", condition=~Q(name="")),
        )

    def __str__(self) -> str:
        return self.name


class GroupMember(NumberedModel):
    """One person in one group."""

    group = models.ForeignKey(PeopleGroup, models.CASCADE, related_name="members", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="group_places")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (models.UniqueConstraint(fields=("group", "user"), name="annotation_groupmember_once"),)


class GroupRole(NumberedModel):
    """The role everybody of a group has in one project."""

    group = models.ForeignKey(PeopleGroup, models.CASCADE, related_name="roles", db_index=False)
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
