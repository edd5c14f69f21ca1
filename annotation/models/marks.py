"""What managers keep to find their way: tags on questions, and views of the table of questions under names."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models.numbered import NumberedModel
from annotation.models.projects import Project
from annotation.models.questions import Query


class Tag(NumberedModel):
    """A word that a project's managers put on questions; it goes with the last question that has it."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="tags", db_index=False)
    name = models.CharField(max_length=40)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "name"), name="annotation_tag_once"),
            models.CheckConstraint(name="annotation_tag_says_something", condition=~Q(name="")),
        )


class Tagged(NumberedModel):
    """A question with a tag."""

    tag = models.ForeignKey(Tag, models.CASCADE, related_name="questions", db_index=False)
    query = models.ForeignKey(Query, models.CASCADE, related_name="tagged", db_index=False)

    class Meta:
        verbose_name_plural = "tagged"
        constraints = (models.UniqueConstraint(fields=("query", "tag"), name="annotation_tagged_once"),)
        indexes = (models.Index(fields=("tag", "query"), name="annotation_tagged_tag"),)


class SavedView(models.Model):
    """What somebody narrowed the table of questions down to, under a name; shared with the other managers or not.

    Words that were searched for are no part of it: they may stand in a record, which is forgotten one day.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="saved_views", db_index=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    chosen = models.JSONField(default=dict)
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "owner", "name"), name="annotation_savedview_once"),
            models.CheckConstraint(
                name="annotation_savedview_keeps_no_words", condition=~Q(chosen__has_key="text") & ~Q(name="")
            ),
        )

    def __str__(self) -> str:
        return f"view {self.pk}"
