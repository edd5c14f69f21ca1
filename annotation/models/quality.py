"""Hidden checks, agreement reports, reviews and the machine that answers."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.kinds import Aggregation
from annotation.models.numbered import NumberedModel
from annotation.models.projects import Project
from annotation.models.questions import Query


class PauseReason(models.TextChoices):
    CHECKS = "checks", _("answers to questions with known answers")
    MANAGER = "manager", _("a manager's decision")


class GoldSource(models.TextChoices):
    PUBLIC = "public", _("public example")
    ASKED = "asked", _("question that was asked, paid for and settled before")


class GoldQuery(NumberedModel):
    """A question with a known answer; its answers never reach a training."""

    query = models.OneToOneField("annotation.Query", models.PROTECT, related_name="gold")
    choice = models.PositiveBigIntegerField()
    source = models.CharField(max_length=10, choices=GoldSource.choices)
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "gold queries"


class QualityReport(NumberedModel):
    project = models.OneToOneField("annotation.Project", models.CASCADE, related_name="quality_report")
    job = models.OneToOneField("annotation.Job", models.PROTECT, related_name="+")
    method = models.CharField(max_length=12, choices=Aggregation.choices)
    answers = models.PositiveIntegerField(default=0)
    questions = models.PositiveIntegerField(default=0)
    alpha = models.FloatField(null=True, blank=True, help_text="Krippendorff's alpha; empty where nothing overlaps.")
    skills = models.JSONField(default=dict, help_text="By person: share of answers equal to the model's.")
    made_at = models.DateTimeField(null=True, blank=True)


class Opinion(NumberedModel):
    """The class by the model of a report; shown and exported, never trained on."""

    report = models.ForeignKey(QualityReport, models.CASCADE, related_name="opinions", db_index=False)
    query = models.ForeignKey("annotation.Query", models.CASCADE, related_name="+")
    choice = models.PositiveBigIntegerField()
    probability = models.FloatField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("report", "query"), name="annotation_opinion_once"),
            models.CheckConstraint(
                name="annotation_opinion_probability", condition=Q(probability__gte=0, probability__lte=1)
            ),
        )


class ReviewState(models.TextChoices):
    LEASED = "leased", _("leased")
    SETTLED = "settled", _("decided")
    RETURNED = "returned", _("sent back")
    SET_ASIDE = "set_aside", _("set aside")
    SKIPPED = "skipped", _("skipped")
    ENDED = "ended", _("ended without a decision")


class Review(NumberedModel):
    project = models.ForeignKey(Project, models.CASCADE, related_name="reviews", db_index=False)
    query = models.ForeignKey(Query, models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    state = models.CharField(max_length=9, choices=ReviewState.choices, default=ReviewState.LEASED)
    leased_until = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("query",), condition=Q(state="leased"), name="annotation_review_one_reads"),
            models.UniqueConstraint(
                fields=("reviewer", "project"), condition=Q(state="leased"), name="annotation_review_one_lease"
            ),
            models.CheckConstraint(
                name="annotation_review_finished", condition=Q(state="leased") ^ Q(finished_at__isnull=False)
            ),
        )
        indexes = (models.Index(fields=("project", "reviewer", "finished_at"), name="annotation_review_done"),)


class Machine(NumberedModel):
    """A program that answers in a project, under an account that nobody can sign in to."""

    project = models.OneToOneField(Project, models.CASCADE, related_name="machine")
    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.PROTECT, related_name="machine")
