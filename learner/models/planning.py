"""Simulations of plans: made once for each configuration, from public or made-up data alone."""

from django.db import models

from annotation.models import Job, Project
from annotation.models.imports import OpeningDraft


class PlanSimulation(models.Model):
    """Result of a simulated setup; equal setups share one, except on the public file of one project or draft."""

    fingerprint = models.CharField(max_length=64, unique=True)
    setup = models.JSONField()
    epsilon = models.FloatField(help_text="What choosing and training share.")
    result = models.JSONField(null=True)
    job = models.OneToOneField(Job, models.SET_NULL, related_name="plan_simulation", null=True)
    project = models.ForeignKey(Project, models.CASCADE, null=True, related_name="+")
    draft = models.ForeignKey(OpeningDraft, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"simulation {self.fingerprint[:8]}"
