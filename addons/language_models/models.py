"""Language models at work in projects."""

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.numbered import NumberedModel
from annotation.models.quality import Machine


class MachineAnnotator(NumberedModel):
    machine = models.OneToOneField(Machine, models.CASCADE, related_name="language_model")
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
            models.CheckConstraint(name="language_models_fault_said", condition=Q(faults=0) | ~Q(last_fault="")),
        )

    @property
    def user(self) -> User:
        return self.machine.user
