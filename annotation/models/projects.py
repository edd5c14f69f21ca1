"""The project: its settings, its accounts, and which settings can never stand together."""

from typing import Any

from django.conf import settings
from django.db import models

from annotation.models.configurations import settings_in
from annotation.models.kinds import Arrival, DataKind, Oracle, PrivacyUnit, ProjectState
from annotation.models.settings import Settings


class Project(Settings, models.Model):
    slug = models.SlugField(unique=True, max_length=60)
    name = models.CharField(max_length=120)
    question = models.CharField(max_length=200, help_text="The one sentence annotators answer.")
    guidelines = models.TextField(blank=True)
    preset = models.CharField(max_length=40)
    oracle = models.CharField(max_length=10, choices=Oracle.choices)
    arrival = models.CharField(max_length=10, choices=Arrival.choices, default=Arrival.POOL)
    data_kind = models.CharField(max_length=10, choices=DataKind.choices)
    classes = models.JSONField(help_text="Names of the classes, in the order they are shown.")
    merged_classes = models.JSONField(
        default=dict, blank=True, help_text="Classes that count as another one, with that one and since when."
    )
    renamed_classes = models.JSONField(
        default=dict, blank=True, help_text="Earlier names of classes, each with the one it has now."
    )
    state = models.CharField(max_length=10, choices=ProjectState.choices, default=ProjectState.ACTIVE)

    privacy_unit = models.CharField(max_length=12, choices=PrivacyUnit.choices)
    pool_account = models.OneToOneField("privacy.BudgetAccount", models.PROTECT, related_name="+")
    labels_account = models.OneToOneField(
        "privacy.BudgetAccount", models.PROTECT, related_name="+", null=True, blank=True
    )

    columns = models.JSONField(default=list, blank=True, help_text="Declared columns with bounds or categories.")
    image_height = models.PositiveIntegerField(null=True, blank=True)
    image_width = models.PositiveIntegerField(null=True, blank=True)

    labels_used_through = models.BigIntegerField(
        default=0, help_text="Consensuses up to this id were given to a training; they never change."
    )
    labels_used_at = models.DateTimeField(
        null=True, blank=True, help_text="When the newest training took what was settled by then."
    )

    guidelines_version = models.PositiveIntegerField(default=1)

    second_manager = models.BooleanField(
        default=False, help_text="A higher limit of an account needs the approval of a second manager."
    )

    configuration = models.OneToOneField("annotation.Configuration", models.PROTECT, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    # No column: what let somebody in sets it for the pages (`seen_by`).
    viewer_manages: bool

    def __str__(self) -> str:
        return self.name

    @property
    def settings(self) -> dict[str, Any]:
        stored = {field.attname: getattr(self, field.attname) for field in self._meta.concrete_fields}
        return {**stored, **self.absent, **settings_in(self.configuration_id)}
