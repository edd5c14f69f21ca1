"""Language models at work in projects."""

import uuid
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.utils import timezone

from annotation.models.numbered import NumberedModel
from annotation.models.quality import Machine


class MachineAnnotator(NumberedModel):
    machine = models.OneToOneField(Machine, models.CASCADE, related_name="language_model")
    requests = models.PositiveIntegerField(default=0, help_text="Sent so far, counted before each is sent.")
    unusable = models.PositiveIntegerField(default=0, help_text="Replies that named no class.")
    tokens = models.PositiveBigIntegerField(default=0, help_text="As the endpoint counts them.")
    faults = models.PositiveIntegerField(default=0, help_text="Runs in a row that ended with a fault.")
    last_fault = models.CharField(max_length=200, blank=True)
    next_at = models.DateTimeField(null=True, blank=True, help_text="Nothing is sent before.")
    leased_until = models.DateTimeField(null=True, blank=True, help_text="A worker is at it until then.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="language_models_fault_said", condition=Q(faults=0) | ~Q(last_fault="")),
        )

    @property
    def user(self) -> User:
        return self.machine.user


# Longer than all requests of a draft together may take.
LONGEST_DRAFTING = timedelta(minutes=10)


class WordsDraft(NumberedModel):
    """Example texts that a language model drafts for a person to edit; all that the model is shown is in the row."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    project = models.ForeignKey("annotation.Project", models.CASCADE, null=True, blank=True, related_name="+")
    opening = models.UUIDField(null=True, blank=True, help_text="The project is not opened yet.")
    endpoint = models.CharField(max_length=40)
    model = models.CharField(max_length=200)
    classes = models.JSONField()
    question = models.TextField()
    guidelines = models.TextField(blank=True)
    examples = models.PositiveSmallIntegerField(help_text="Of each class.")
    found = models.JSONField(default=list, help_text="Pairs of a class and a text.")
    fault = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="language_models_draft_of_one", condition=Q(project=None) ^ Q(opening=None)),
        )

    @property
    def is_waiting(self) -> bool:
        return self.ended_at is None and not self.is_overdue

    @property
    def is_overdue(self) -> bool:
        """True once its worker has ended without a result."""
        return self.ended_at is None and timezone.now() - self.created_at > LONGEST_DRAFTING

    @property
    def lines(self) -> list[str]:
        """The drafts as a person edits them: a class, a colon and an example in quotation marks."""
        return [f'{name}: "{text}"' for name, text in self.found]

    @property
    def lines_text(self) -> str:
        return "\n".join(self.lines)
