"""Tables of randomised answers: their charge, and what was said."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q


class AnswerSeries(models.Model):
    project = models.OneToOneField("annotation.Project", models.CASCADE, related_name="answer_series")
    attempt = models.PositiveSmallIntegerField(default=1, help_text="Which attempt to pay for them.")
    entry = models.OneToOneField(
        "privacy.LedgerEntry",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The committed entry that pays for all of them; nothing is said before there is one.",
    )

    class Meta:
        verbose_name_plural = "answer series"

    def __str__(self) -> str:
        return f"randomised answers of {self.project_id}"


class RandomizedLabel(models.Model):
    """Randomised responses to a question's consensus: all that anybody outside ever learns of it."""

    project = models.ForeignKey("annotation.Project", models.CASCADE, related_name="+", db_index=False)
    query = models.ForeignKey("annotation.Query", models.PROTECT, related_name="randomized_labels", db_index=False)
    number = models.PositiveSmallIntegerField(help_text="Which response to the question, from 1.")
    answers = models.PositiveSmallIntegerField(help_text="How many answers the question had by then.")
    said = models.PositiveSmallIntegerField(help_text="The class that was said.")
    kept = ArrayField(models.PositiveSmallIntegerField(), help_text="The classes that could have been said; public.")
    entry = models.ForeignKey("privacy.LedgerEntry", models.PROTECT, related_name="+", db_index=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("query", "number"), name="learner_randomized_label_once"),
            models.UniqueConstraint(fields=("query", "answers"), name="learner_randomized_label_once_for_answers"),
            models.CheckConstraint(
                name="learner_randomized_label_shape", condition=Q(number__gte=1, answers__gte=1, kept__len__gte=1)
            ),
        )
        indexes = (models.Index(fields=("project", "id"), name="learner_randomized_project"),)

    def __str__(self) -> str:
        return f"randomised label {self.number} of query {self.query_id}"
