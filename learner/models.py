"""What the learner stores: feature files, rounds of questions, trainings, released models and their evaluations."""

import uuid

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotation.models import Dataset, Project, Query, Selection, WorkState
from learner import part_models, planning_models, webhook_models  # noqa: F401 - Django finds an app's tables here


class FeatureMatrix(models.Model):
    """One float32 `.npy` of one dataset (or of one gate run's output) under one featuriser version."""

    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="feature_matrices")
    version = models.CharField(max_length=120)
    file = models.FileField(max_length=300)
    sha256 = models.CharField(max_length=64)
    rows = models.BigIntegerField()
    dimension = models.PositiveIntegerField()
    emptied = models.BigIntegerField(default=0, help_text=_("Rows that are zero because their slots are empty."))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "feature matrices"
        constraints = (models.UniqueConstraint(fields=("dataset", "version"), name="learner_matrix_one_per_version"),)

    def __str__(self) -> str:
        return f"features {self.version} of {self.dataset_id}"


class FeatureProjection(models.Model):
    """Principal directions of a project's images: found once, paid by the pool, part of every release."""

    project = models.OneToOneField(Project, models.CASCADE, related_name="feature_projection")
    components = models.JSONField(help_text=_("Released directions, one row each."))
    entry = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"principal directions of {self.project_id}"


class Round(models.Model):
    """One private choice of questions."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="rounds")
    number = models.PositiveIntegerField()
    strategy = models.CharField(max_length=30, choices=Selection.choices)
    model = models.ForeignKey("ModelRelease", models.PROTECT, null=True, blank=True, related_name="rounds")
    state = models.CharField(max_length=10, choices=WorkState.choices, default=WorkState.WAITING)
    attempt = models.PositiveSmallIntegerField(default=0)
    leased_until = models.DateTimeField(null=True, blank=True)
    reservation = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, null=True, blank=True, related_name="+")
    committed_entry = models.OneToOneField(
        "privacy.LedgerEntry", models.PROTECT, null=True, blank=True, related_name="+"
    )
    block = models.PositiveSmallIntegerField(null=True, blank=True, help_text=_("Which secret block, from 1."))
    closes_at = models.DateTimeField(null=True, blank=True, help_text=_("When a secret block is trained on."))
    requested = models.PositiveIntegerField(help_text=_("Questions wanted; of a secret block, records in the pool."))
    selected = models.PositiveIntegerField(null=True, blank=True)
    progress_done = models.PositiveIntegerField(db_default=0)
    progress_total = models.PositiveIntegerField(null=True, blank=True)
    message = models.CharField(max_length=300, db_default="", blank=True, help_text=_("What the attempt does now."))
    error = models.CharField(max_length=1000, blank=True)
    started_at = models.DateTimeField(null=True, blank=True, help_text=_("When the newest attempt began."))
    cancelled_by = models.CharField(max_length=150, db_default="", blank=True, help_text=_("Who asked it to stop."))
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "number"), name="learner_round_number"),
            models.UniqueConstraint(
                fields=("project",), condition=Q(state__in=("waiting", "running")), name="learner_round_one_open"
            ),
            models.CheckConstraint(
                name="learner_round_done",
                condition=~Q(state="done") | Q(committed_entry__isnull=False, selected__lte=F("requested")),
            ),
            models.UniqueConstraint(
                fields=("project", "block"), condition=~Q(state="failed"), name="learner_round_block_once"
            ),
            # A block that is asked about has a public time at which it closes.
            models.CheckConstraint(
                name="learner_round_block_secret",
                condition=Q(strategy="secret_sample", block__isnull=False, block__gte=1)
                & (~Q(state="done") | Q(closes_at__isnull=False))
                | ~Q(strategy="secret_sample") & Q(block=None, closes_at=None),
            ),
        )

    def __str__(self) -> str:
        return f"round {self.number} of {self.project_id}"


class SecretDraw(models.Model):
    """The secret coins of one upload, drawn once: which block asks about which record, if any does."""

    dataset = models.OneToOneField(Dataset, models.CASCADE, related_name="secret_draw")
    blocks = models.BinaryField(help_text=_("One byte for each row: its block from 1, or 0."))
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"coins of dataset {self.dataset_id}"


class ScreenLooks(models.Model):
    """How often a screen has looked at each record of an upload; it follows from the choices, which are visible."""

    dataset = models.OneToOneField(Dataset, models.CASCADE, related_name="screen_looks")
    looks = models.BinaryField(help_text=_("One byte for each row."))
    left = models.BigIntegerField(default=0, help_text=_("Records not asked about that may still be looked at."))
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"looks at dataset {self.dataset_id}"


class WarmStart(models.Model):
    """The model the first rounds score with and trainings lean on.

    It costs nothing where its examples are public; `entry` is what the account of private ones was charged.
    """

    dataset = models.OneToOneField(Dataset, models.PROTECT, related_name="warm_start")
    weights = models.JSONField(help_text=_("Coefficients, as in weights.json."))
    features_version = models.CharField(max_length=120)
    examples = models.PositiveIntegerField(help_text=_("Of private ones the slots, whose number is public."))
    entry = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, related_name="+", null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"start from dataset {self.dataset_id}"


class Stream(models.Model):
    """Where a stream stands: every record before `next_slot` was examined, once. Whoever moves it on locks this row."""

    project = models.OneToOneField(Project, models.CASCADE, related_name="stream")
    attempt = models.PositiveSmallIntegerField(default=1, help_text=_("Which attempt to pay for the stream."))
    entry = models.OneToOneField(
        "privacy.LedgerEntry",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("The committed entry that pays for all of it; nothing is examined before there is one."),
    )
    next_slot = models.BigIntegerField(default=0)
    batches_closed = models.PositiveIntegerField(default=0)
    open_slots = models.JSONField(default=list, help_text=_("Selected slots of the batch that is still open."))
    batches_used = models.PositiveIntegerField(default=0, help_text=_("Batches that made their update."))
    batches_released = models.PositiveIntegerField(default=0, help_text=_("Batches the newest release learned from."))
    learner_state = models.JSONField(null=True, blank=True, help_text=_("Weights after the last update."))

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="learner_stream_in_order",
                condition=Q(batches_used__lte=F("batches_closed"), batches_released__lte=F("batches_used")),
            ),
            models.CheckConstraint(
                name="learner_stream_paid",
                condition=Q(entry__isnull=False) | Q(next_slot=0, batches_closed=0, learner_state=None),
            ),
        )

    def __str__(self) -> str:
        return f"stream of {self.project_id}"


class StreamBatch(models.Model):
    """What one update learns from: the questions whose `round_number` is its number."""

    stream = models.ForeignKey(Stream, models.CASCADE, related_name="batches", db_index=False)
    number = models.PositiveIntegerField()
    end = models.BigIntegerField(help_text=_("The first slot after it."))
    questions = models.PositiveIntegerField(help_text=_("Records selected; secret where windows are hidden."))
    closes_at = models.DateTimeField(help_text=_("When its update is made, whatever is answered."))

    class Meta:
        verbose_name_plural = "stream batches"
        constraints = (models.UniqueConstraint(fields=("stream", "number"), name="learner_stream_batch_once"),)

    def __str__(self) -> str:
        return f"batch {self.number} of {self.stream_id}"


class StreamGuess(models.Model):
    """The exploration behind a guess that an annotator confirms or rejects; it stays inside."""

    query = models.OneToOneField(Query, models.CASCADE, related_name="stream_guess")
    direction = models.JSONField()

    class Meta:
        verbose_name_plural = "stream guesses"

    def __str__(self) -> str:
        return f"guess of question {self.query_id}"


class TrainingRun(models.Model):
    """One private training; a crashed attempt stays charged and the next attempt reserves anew."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="training_runs")
    version = models.PositiveIntegerField(help_text=_("Version the release will carry."))
    state = models.CharField(max_length=10, choices=WorkState.choices, default=WorkState.WAITING)
    attempt = models.PositiveSmallIntegerField(default=0)
    leased_until = models.DateTimeField(null=True, blank=True)
    reservation = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, null=True, blank=True, related_name="+")
    block = models.ForeignKey(Round, models.PROTECT, null=True, blank=True, related_name="training_runs")
    stream_batches = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Batches of a stream behind the version; null in a pool.")
    )
    last_consensus_id = models.BigIntegerField(help_text=_("Labels up to this consensus are used."))
    labels_used = models.PositiveIntegerField()
    unagreed = models.PositiveIntegerField(
        default=0, db_default=0, help_text=_("Questions given up without an agreed answer before it began.")
    )
    progress_done = models.PositiveIntegerField(db_default=0)
    progress_total = models.PositiveIntegerField(null=True, blank=True)
    message = models.CharField(max_length=300, db_default="", blank=True, help_text=_("What the attempt does now."))
    error = models.CharField(max_length=1000, blank=True)
    started_at = models.DateTimeField(null=True, blank=True, help_text=_("When the newest attempt began."))
    cancelled_by = models.CharField(max_length=150, db_default="", blank=True, help_text=_("Who asked it to stop."))
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("project",), condition=Q(state__in=("waiting", "running")), name="learner_training_one_open"
            ),
            models.UniqueConstraint(
                fields=("project", "version"), condition=~Q(state="failed"), name="learner_training_version"
            ),
        )

    def __str__(self) -> str:
        return f"training {self.id}"


class ReleaseState(models.TextChoices):
    """Whether a release is offered: a candidate waits for the release gate, or is held back by it."""

    CANDIDATE = "candidate", _("candidate")
    RELEASED = "released", _("released")
    RETIRED = "retired", _("retired")


class ModelRelease(models.Model):
    """One published model: immutable but for its retirement."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="releases")
    version = models.PositiveIntegerField()
    training_run = models.OneToOneField(TrainingRun, models.PROTECT, related_name="release")
    state = models.CharField(max_length=10, choices=ReleaseState.choices, default=ReleaseState.CANDIDATE)
    estimator = models.CharField(max_length=60)
    event = models.JSONField(help_text=_("The accountant's event of the training."))
    weights = models.JSONField(help_text=_("Released coefficients, as in weights.json."))
    features = models.JSONField(help_text=_("The featuriser, complete."))
    folder = models.CharField(max_length=300)
    digests = models.JSONField(help_text=_("SHA-256 of each file."))
    guarantee = models.JSONField(help_text=_("Limit and spent of the accounts when released."))
    entry = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, related_name="+")
    lineage = models.ManyToManyField("privacy.LedgerEntry", related_name="releases")
    labels_used = models.PositiveIntegerField()
    retired_reason = models.CharField(max_length=300, blank=True)
    # What the release gate looked at, by name; empty until it was asked, and why it holds a candidate back.
    checks = models.JSONField(default=dict, blank=True)
    held_back = models.CharField(max_length=1000, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    configuration = models.JSONField(default=dict, help_text=_("The project's settings at the time."))
    environment = models.JSONField(default=dict, help_text=_("Versions of the code and of the libraries."))
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
        """Whether its numbers and files went with its project."""
        return not self.weights


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
    """How a release does on one public test set."""

    release = models.ForeignKey(ModelRelease, models.CASCADE, related_name="evaluations")
    dataset = models.ForeignKey(Dataset, models.PROTECT, related_name="evaluations")
    examples = models.PositiveIntegerField()
    correct = models.PositiveIntegerField()
    # Macro-F1, calibration and confusion with their intervals, as `learner.evaluation` gives them.
    measures = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("release", "dataset"), name="learner_evaluation_once"),
            models.CheckConstraint(
                name="learner_evaluation_counts", condition=Q(examples__gte=1, correct__lte=F("examples"))
            ),
        )

    def __str__(self) -> str:
        return f"evaluation {self.pk}"
