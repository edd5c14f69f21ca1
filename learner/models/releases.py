"""Released models, who vouched for one, the limits printed on cards, audits and evaluations."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotation.models import Dataset, Project
from learner.models.trainings import TrainingRun
from privacy.message_fields import MessageField, MessagesInField


class ReleaseState(models.TextChoices):
    CANDIDATE = "candidate", _("release candidate")
    RELEASED = "released", _("released")
    RETIRED = "retired", _("retired")


class ModelRelease(models.Model):
    """One published model: what it predicts never changes, and what it promises only when a limit rises."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="releases")
    version = models.PositiveIntegerField()
    training_run = models.OneToOneField(TrainingRun, models.PROTECT, related_name="release")
    state = models.CharField(max_length=10, choices=ReleaseState.choices, default=ReleaseState.CANDIDATE)
    estimator = models.CharField(max_length=60)
    event = models.JSONField(help_text="The accountant's event of the training.")
    weights = models.JSONField(help_text="Released coefficients, as in weights.json.")
    features = models.JSONField(help_text="The featuriser, complete.")
    folder = models.CharField(max_length=300)
    digests = models.JSONField(help_text="SHA-256 of each file.")
    guarantee = models.JSONField(
        help_text="Limits of the accounts as the card prints them, and what was spent when released."
    )
    entry = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, related_name="+")
    lineage = models.ManyToManyField("privacy.LedgerEntry", related_name="releases")
    labels_used = models.PositiveIntegerField()
    span_counts = models.JSONField(
        default=dict,
        blank=True,
        help_text="Noisy counts of right, missed and spurious spans of held-out texts, and their noise; mostly empty.",
    )
    retired_reason = models.CharField(max_length=300, blank=True)
    # What the release gate looked at, by name; empty until it was asked, and why it holds one back.
    checks = MessagesInField(default=dict, blank=True, inside="$.*")
    mechanism_audit = models.ForeignKey(
        "learner.MechanismAudit", models.PROTECT, related_name="releases", null=True, blank=True
    )
    held_back = MessageField(blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    configuration = models.JSONField(default=dict, help_text="The project's settings at the time.")
    environment = models.JSONField(default=dict, help_text="Versions of the code and of the libraries.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "version"), name="learner_release_version"),
            models.CheckConstraint(
                name="learner_release_retired_with_reason", condition=Q(state="retired") ^ Q(retired_reason="")
            ),
            models.CheckConstraint(
                name="learner_release_passed_the_gate",
                condition=~Q(state="released") | Q(released_at__isnull=False, held_back=""),
            ),
        )

    def __str__(self) -> str:
        return f"{self.project_id} v{self.version}"

    @property
    def is_buried(self) -> bool:
        return not self.weights


class Endorsement(models.Model):
    """A manager's word that a release is `latest` although public examples say that it does not beat a constant."""

    release = models.OneToOneField(ModelRelease, models.PROTECT, related_name="endorsement")
    reason = models.CharField(max_length=300)
    endorsed_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.CheckConstraint(name="learner_endorsement_has_reason", condition=~Q(reason="")),)

    def __str__(self) -> str:
        return f"endorsement of release {self.release_id}"


class ChannelMove(models.Model):
    """A manager's word that a channel of a project, `stable` or another name, is a version from now on; rows stay."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="channel_moves", db_index=False)
    channel = models.CharField(max_length=30)
    release = models.ForeignKey(ModelRelease, models.PROTECT, related_name="+")
    reason = models.CharField(max_length=300)
    rolled_back = models.BooleanField(default=False, help_text="Back to an earlier version, which the program says.")
    moved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = (models.Index(fields=("project", "channel", "id"), name="learner_channel_newest"),)
        constraints = (
            models.CheckConstraint(name="learner_channel_has_reason", condition=~Q(reason="")),
            models.CheckConstraint(
                name="learner_channel_name",
                condition=Q(channel__regex=r"^[a-z][a-z-]{1,29}$") & ~Q(channel__in=["latest", "main"]),
            ),
        )

    def __str__(self) -> str:
        return f"{self.channel} of {self.project_id}"


class PrintedLimit(models.Model):
    """Account limit on the card of a release; while it is offered, the account allows no more."""

    release = models.ForeignKey(ModelRelease, models.PROTECT, related_name="printed_limits", db_index=False)
    account = models.ForeignKey("privacy.BudgetAccount", models.PROTECT, related_name="+")
    epsilon_limit_nano = models.BigIntegerField()
    delta_limit_atto = models.BigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("release", "account"), name="learner_printed_limit_once"),)

    def __str__(self) -> str:
        return f"limit of account {self.account_id} on the card of release {self.release_id}"


class MechanismAudit(models.Model):
    """A canary's verdict on an estimator with its parameters, under one version of the code; asked once."""

    fingerprint = models.CharField(max_length=64, primary_key=True)
    estimator = models.CharField(max_length=60)
    charged_epsilon = models.FloatField()
    epsilon_lower_bound = models.FloatField()
    trials = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"canary of {self.estimator}"


class Evaluation(models.Model):
    release = models.ForeignKey(ModelRelease, models.CASCADE, related_name="evaluations")
    dataset = models.ForeignKey(Dataset, models.PROTECT, related_name="evaluations")
    examples = models.PositiveIntegerField()
    correct = models.PositiveIntegerField()
    constant_correct = models.PositiveIntegerField(
        default=0, help_text="How often the likeliest class alone would have been right."
    )
    described_correct = models.PositiveIntegerField(
        null=True, blank=True, help_text="How often the words about the classes alone would have been right."
    )
    # Macro-F1, calibration and confusion with their intervals, as `learner.releases.evaluation` gives them.
    measures = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("release", "dataset"), name="learner_evaluation_once"),
            models.CheckConstraint(
                name="learner_evaluation_counts",
                condition=Q(examples__gte=1, correct__lte=F("examples"), constant_correct__lte=F("examples"))
                & (Q(described_correct=None) | Q(described_correct__lte=F("examples"))),
            ),
        )

    def __str__(self) -> str:
        return f"evaluation {self.pk}"

    @property
    def finds_spans(self) -> bool:
        return "f1" in self.measures

    @property
    def right(self) -> tuple[float, float, float | None]:
        """Right answers of the release, of one constant and of version 0; of spans, entity F1 times the examples."""
        if not self.finds_spans:
            return self.correct, self.constant_correct, self.described_correct
        value, constant = self.measures["micro_f1"]["value"], self.measures["constant"]["micro_f1"]
        described = self.measures.get("version_0", {}).get("micro_f1")
        return self.examples * value, self.examples * constant, described and self.examples * described
