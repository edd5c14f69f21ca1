"""The project: its settings, its accounts, and which settings can never stand together."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotation.models.configurations import settings_in
from annotation.models.kinds import (
    Arrival,
    DataKind,
    Oracle,
    PrivacyUnit,
    ProjectState,
    QuestionKind,
    Selection,
    UpdatePolicy,
)
from annotation.models.quality import Aggregation
from annotation.models.settings import Settings


class Project(Settings, models.Model):
    """One labelling task over one pool, with its configuration and its privacy accounts."""

    slug = models.SlugField(unique=True, max_length=60)
    name = models.CharField(max_length=120)
    question = models.CharField(max_length=200, help_text=_("The one sentence annotators answer."))
    guidelines = models.TextField(blank=True)
    preset = models.CharField(max_length=40)
    oracle = models.CharField(max_length=10, choices=Oracle.choices)
    arrival = models.CharField(max_length=10, choices=Arrival.choices, default=Arrival.POOL)
    data_kind = models.CharField(max_length=10, choices=DataKind.choices)
    classes = models.JSONField(help_text=_("Names of the classes, in the order they are shown."))
    state = models.CharField(max_length=10, choices=ProjectState.choices, default=ProjectState.ACTIVE)

    privacy_unit = models.CharField(max_length=12, choices=PrivacyUnit.choices)
    pool_account = models.OneToOneField("privacy.BudgetAccount", models.PROTECT, related_name="+")
    labels_account = models.OneToOneField(
        "privacy.BudgetAccount", models.PROTECT, related_name="+", null=True, blank=True
    )

    columns = models.JSONField(default=list, blank=True, help_text=_("Declared columns with bounds or categories."))
    image_height = models.PositiveIntegerField(null=True, blank=True)
    image_width = models.PositiveIntegerField(null=True, blank=True)

    compared_with = models.ForeignKey(
        "self",
        models.SET_NULL,
        related_name="+",
        null=True,
        blank=True,
        help_text=_("A project that asks at random; its releases are shown beside this one's."),
    )
    round_size = models.PositiveIntegerField(help_text=_("Questions asked in one round."))
    question_kind = models.CharField(max_length=10, choices=QuestionKind.choices, default=QuestionKind.CHOOSE)

    labels_used_through = models.BigIntegerField(
        default=0, help_text=_("Consensuses up to this id were given to a training; they never change.")
    )
    labels_used_at = models.DateTimeField(
        null=True, blank=True, help_text=_("When the newest training took what was settled by then.")
    )

    overlap = models.PositiveSmallIntegerField(default=1, help_text=_("How many people answer each question."))
    lease_seconds = models.PositiveIntegerField(default=600)
    confirm_answers = models.BooleanField(default=False, help_text=_("An answer counts once it is confirmed."))
    guidelines_version = models.PositiveIntegerField(default=1)
    skips_to_set_aside = models.PositiveSmallIntegerField(
        default=3, help_text=_("So many people skip a question before it leaves the queue.")
    )
    answers_per_person = models.PositiveIntegerField(null=True, blank=True)
    answers_per_day = models.PositiveIntegerField(null=True, blank=True, help_text=_("Of one person."))
    encounter_limit = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Contributors, or texts of a gate, that one person may see.")
    )
    quiet_from = models.TimeField(null=True, blank=True, help_text=_("From then no question is handed out."))
    quiet_until = models.TimeField(null=True, blank=True)
    overlap_limit = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text=_("Where answers disagree, ask one more person, up to so many in all.")
    )
    aggregation = models.CharField(max_length=12, choices=Aggregation.choices, default=Aggregation.MAJORITY)
    gold_share = models.FloatField(default=0.0, help_text=_("Share of questions whose answer is known."))
    gold_minimum = models.PositiveSmallIntegerField(default=10, help_text=_("Checks before anybody is judged."))
    gold_warn_below = models.FloatField(null=True, blank=True)
    gold_pause_below = models.FloatField(null=True, blank=True)

    second_manager = models.BooleanField(
        default=False, help_text=_("A higher limit of an account needs the approval of a second manager.")
    )

    configuration = models.OneToOneField("annotation.Configuration", models.PROTECT, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="annotation_project_overlap", condition=Q(overlap__gte=1)),
            models.CheckConstraint(name="annotation_project_round_size", condition=Q(round_size__gte=1)),
            # Who is asked about a question sees it, and a further person would show that the first ones disagree.
            models.CheckConstraint(
                name="annotation_project_crowd_fixed_overlap", condition=Q(oracle="trusted") | Q(overlap_limit=None)
            ),
            models.CheckConstraint(name="annotation_project_skips", condition=Q(skips_to_set_aside__gte=1)),
            models.CheckConstraint(
                name="annotation_project_quiet_hours",
                condition=Q(quiet_from=None, quiet_until=None)
                | Q(quiet_from__isnull=False, quiet_until__isnull=False) & ~Q(quiet_from=F("quiet_until")),
            ),
            models.CheckConstraint(
                name="annotation_project_gold", condition=Q(gold_share__gte=0, gold_share__lte=1, gold_minimum__gte=1)
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def hides_selection(self) -> bool:
        """Whether ids, numbers and times of what is asked must stay among those who see the records."""
        return self.selection == Selection.SECRET_SAMPLE or self.update_policy == UpdatePolicy.FLSW_HIDDEN

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by their names, those of the configuration document among them."""
        stored = {field.attname: getattr(self, field.attname) for field in self._meta.concrete_fields}
        return {**stored, **self.absent, **settings_in(self.configuration_id)}
