"""Simulations of plans: made once for each configuration, from public or made-up data alone."""

from django.db import models

from annotation.models import Job


class PlanSimulation(models.Model):
    """What a setup gave; equal setups share one, whichever project asked first."""

    fingerprint = models.CharField(max_length=64, unique=True)
    setup = models.JSONField()
    epsilon = models.FloatField(help_text="What choosing and training share.")
    result = models.JSONField(null=True)
    job = models.OneToOneField(Job, models.SET_NULL, related_name="plan_simulation", null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"simulation {self.fingerprint[:8]}"
