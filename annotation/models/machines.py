"""A machine that answers in a project as one annotator among others: whose account it is, and how it got on."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.projects import Project


class MachineAnnotator(models.Model):
    """The language model that answers in a project, under an account that nobody can sign in to."""

    project = models.OneToOneField(Project, models.CASCADE, related_name="machine")
    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.PROTECT, related_name="machine")
    requests = models.PositiveIntegerField(default=0, help_text=_("Sent so far, counted before each is sent."))
    unusable = models.PositiveIntegerField(default=0, help_text=_("Replies that named no class."))
    tokens = models.PositiveBigIntegerField(default=0, help_text=_("As the endpoint counts them."))
    faults = models.PositiveIntegerField(default=0, help_text=_("Runs in a row that ended with a fault."))
    last_fault = models.CharField(max_length=200, blank=True)
    next_at = models.DateTimeField(null=True, blank=True, help_text=_("Nothing is sent before."))
    leased_until = models.DateTimeField(null=True, blank=True, help_text=_("A worker is at it until then."))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="annotation_machine_fault_said", condition=Q(faults=0) | ~Q(last_fault="")),
        )

    def __str__(self) -> str:
        return f"machine of {self.project_id}"
