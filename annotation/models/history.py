"""Activity log and changes of the configuration; rows are only added."""

from django.db import models
from django.db.models.functions import Now

from annotation.models.numbered import NumberedModel


class ProjectChange(NumberedModel):
    project = models.ForeignKey("annotation.Project", models.PROTECT, related_name="changes", db_index=False)
    actor = models.CharField(max_length=150, blank=True, help_text="Name as it was; empty where no page did it.")
    fields = models.JSONField(help_text="By field: the value before and the value after.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = (models.Index(fields=("project", "id"), name="annotation_change_project"),)


class Action(NumberedModel):
    """Something a person did by a page or the API, other than answering questions."""

    project = models.ForeignKey(
        "annotation.Project", models.PROTECT, related_name="actions", null=True, blank=True, db_index=False
    )
    actor = models.CharField(max_length=150)
    route = models.CharField(max_length=80, help_text="Name of the page or API route.")
    target = models.JSONField(default=dict, help_text="Numbers of what it was done to.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = (models.Index(fields=("project", "id"), name="annotation_action_project"),)
