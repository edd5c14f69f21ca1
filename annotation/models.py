"""What annotation stores: projects, pools, questions, leases, labels, and what must never be false about them."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import MD5
from django.utils.translation import gettext_lazy as _

# Django finds what this module imports.
from annotation import (  # noqa: F401
    deletion_models,
    draft_models,
    forgetting_models,
    group_models,
    history_models,
    idempotent_models,
    import_models,
    joining_models,
    limit_models,
    quality_models,
    retention_models,
)
from annotation.quality_models import Aggregation, PauseReason


class Oracle(models.TextChoices):
    """Who answers, and so from whom the pool is protected."""

    TRUSTED = "trusted", _("trusted: annotators see the records")
    CROWD = "crowd", _("crowd: annotators see only what passed the gate")


class Arrival(models.TextChoices):
    """How records reach a project."""

    POOL = "pool", _("pool: uploads, asked in rounds")
    STREAM = "stream", _("stream: records posted one by one, each examined once")


class DataKind(models.TextChoices):
    """What a record is made of."""

    TEXT = "text", _("text")
    TABLE = "table", _("table of declared columns")
    IMAGE = "image", _("image")


class PrivacyUnit(models.TextChoices):
    """Whose presence the guarantee hides."""

    RECORD = "record", _("one record")
    CONTRIBUTOR = "contributor", _("everything of one contributor")


class Selection(models.TextChoices):
    """How a round chooses what to ask; `learner.strategies` has one class for each."""

    RANDOM = "random", _("random choice")
    SECRET_SAMPLE = "secret_sample", _("secret sample: only models are published")
    TOP_C = "top_c", _("private top-c by the released model's uncertainty")
    EXPOSURE_CAPPED_SCREEN = "exposure_capped_screen", _("screen, each record looked at a limited number of times")
    BERNOULLI_SCREEN = "bernoulli_screen", _("screen with two rates, each record looked at once")
    EXPONENTIAL_SCREEN = "exponential_screen", _("screen with a falling rate, each record looked at once")
    VERSION_SPACE_SCREEN = "version_space_screen", _("screen by what released models leave undecided")
    UNCERTAINTY = "uncertainty", _("uncertainty of the gate's output")
    ALL = "all", _("every record of a stream")
    REPEAT_VOTES = "repeat_votes", _("more answers to doubtful questions")


class UncertaintyMeasure(models.TextChoices):
    """What makes an answer uncertain; all of them agree on two classes."""

    ENTROPY = "entropy", _("entropy of all classes")
    MARGIN = "margin", _("margin between the two likeliest classes")
    LEAST_CONFIDENCE = "least_confidence", _("doubt about the likeliest class")
    MC_DROPOUT = "mc_dropout", _("disagreement of a network over dropout (extra “deep”)")


class Estimator(models.TextChoices):
    """What a release is trained with; every one of them adds noise, its twins without noise have no name here."""

    LOGISTIC = "logistic", _("logistic regression, objective perturbation")
    LOGISTIC_GAUSSIAN = "logistic_gaussian", _("logistic regression, Gaussian objective perturbation (has a delta)")
    LOGISTIC_OUTPUT = "logistic_output", _("logistic regression, output perturbation")
    HUBER_SVM = "huber_svm", _("Huber SVM, objective perturbation")
    HUBER_SVM_GAUSSIAN = "huber_svm_gaussian", _("Huber SVM, Gaussian objective perturbation (has a delta)")
    HUBER_SVM_OUTPUT = "huber_svm_output", _("Huber SVM, output perturbation")
    MINIBATCH_SVM = "minibatch_svm", _("SVM by noisy steps on batches")
    MI_OGD = "mi_ogd", _("online gradient descent, one noisy gradient of each record (has a delta)")
    BANDIT_OGD = "bandit_ogd", _("online gradient descent from confirmations (has a delta)")


class UpdatePolicy(models.TextChoices):
    """When answers become an update or a training; `learner.policies` has the rules."""

    PER_ROUND = "per_round", _("pool: whenever a fixed number of new labels has come in")
    DOUBLING = "doubling", _("whenever the number of labels, or of a stream's records, has doubled")
    IMMEDIATE = "immediate", _("stream: after every record that was asked about")
    FLSW = "flsw", _("stream: windows of a fixed number of records, selection visible")
    FLSW_HIDDEN = "flsw_hidden", _("stream: windows of a fixed number of records, selection hidden")
    FLMB = "flmb", _("stream: batches of a fixed number of questions")


class QuestionKind(models.TextChoices):
    """What an annotator is asked about a record."""

    CHOOSE = "choose", _("choose a class")
    CONFIRM = "confirm", _("say whether the model's guess is right")


class GateKind(models.TextChoices):
    """How a crowd project's gate decides which texts pass."""

    K_ANONYMITY = "k_anonymity", _("k-anonymity on a secret sample")
    THRESHOLD = "threshold", _("noisy threshold")


class ProjectState(models.TextChoices):
    """Whether questions are handed out."""

    ACTIVE = "active", _("active")
    PAUSED = "paused", _("paused")
    ARCHIVED = "archived", _("archived")
    DELETED = "deleted", _("deleted")


# Each number also "is not null": a comparison with null is unknown, and a check lets the unknown pass.
SAMPLED_GATE = Q(
    gate_kind="k_anonymity",
    gate_k__isnull=False,
    gate_k__gte=2,
    gate_sampling_rate__isnull=False,
    gate_sampling_rate__gt=0,
    gate_sampling_rate__lt=1,
    gate_delta=None,
    gate_floor=None,
)
# A floor under 2 would let out what one person said.
THRESHOLD_GATE = Q(
    gate_kind="threshold",
    gate_k=None,
    gate_sampling_rate=None,
    gate_delta__isnull=False,
    gate_delta__gt=0,
    gate_delta__lt=1,
    gate_floor__isnull=False,
    gate_floor__gte=2,
)


PUBLIC_RATE = Q(screen_low__gt=0, screen_high__gte=F("screen_low"), screen_high__lt=1)
GAUSSIAN_ESTIMATORS = (
    Estimator.LOGISTIC_GAUSSIAN,
    Estimator.HUBER_SVM_GAUSSIAN,
    Estimator.MI_OGD,
    Estimator.BANDIT_OGD,
)
STREAM_POLICY = Q(update_policy="immediate", window_length=None, window_denominator=None) | Q(
    Q(update_policy="flsw_hidden", window_denominator__isnull=False, window_denominator__gte=1)
    | Q(update_policy__in=("flsw", "flmb", "doubling"), window_denominator=None),
    window_length__isnull=False,
    window_length__gte=1,
)


class Features(models.TextChoices):
    """How records become vectors."""

    STANDARD = "standard", _("declared rules: hashed words, bounds and categories, pooled pixels")
    ENCODER = "encoder", _("a public sentence encoder")
    PRINCIPAL = "principal", _("principal directions of the images, found privately")


class Project(models.Model):
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

    gate_kind = models.CharField(max_length=12, choices=GateKind.choices, default=GateKind.K_ANONYMITY)
    gate_k = models.PositiveIntegerField(null=True, blank=True)
    gate_sampling_rate = models.FloatField(null=True, blank=True)
    gate_epsilon = models.FloatField(null=True, blank=True)
    gate_delta = models.FloatField(
        null=True, blank=True, help_text=_("Of the threshold gate; of the other it follows.")
    )
    gate_floor = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Smallest true number that can pass the threshold gate.")
    )
    texts_per_contributor = models.PositiveIntegerField(null=True, blank=True)
    normalizer = models.CharField(max_length=20, blank=True)

    columns = models.JSONField(default=list, blank=True, help_text=_("Declared columns with bounds or categories."))
    image_height = models.PositiveIntegerField(null=True, blank=True)
    image_width = models.PositiveIntegerField(null=True, blank=True)
    feature_dimension = models.PositiveIntegerField(help_text=_("Length of a feature vector for text and images."))
    features = models.CharField(max_length=10, choices=Features.choices, default=Features.STANDARD)
    features_epsilon = models.FloatField(
        null=True, blank=True, help_text=_("What finding principal directions costs the pool, once.")
    )

    compared_with = models.ForeignKey(
        "self",
        models.SET_NULL,
        related_name="+",
        null=True,
        blank=True,
        help_text=_("A project that asks at random; its releases are shown beside this one's."),
    )
    selection = models.CharField(max_length=30, choices=Selection.choices)
    uncertainty_measure = models.CharField(
        max_length=20, choices=UncertaintyMeasure.choices, default=UncertaintyMeasure.ENTROPY
    )
    repeat_votes = models.BooleanField(
        default=False, help_text=_("Once half of the texts were asked, ask about doubtful answers again.")
    )
    screen_high = models.FloatField(default=0.1, help_text=_("Probability of a question near the boundary."))
    screen_low = models.FloatField(default=0.05, help_text=_("Probability of a question elsewhere."))
    screen_reach = models.FloatField(default=0.1, help_text=_("Distance from the boundary that counts as near."))
    screen_shrinks = models.BooleanField(
        default=False, help_text=_("After t updates of a stream, near means a distance of at most 1/t.")
    )
    exponential_threshold = models.FloatField(
        default=0.5, help_text=_("Distance below which the exponential screen treats all alike.")
    )
    half_angle = models.FloatField(
        default=0.2, help_text=_("Angle around the released weights, in radians, that is taken to hold the truth.")
    )
    exposures = models.PositiveSmallIntegerField(default=3, help_text=_("How often a screen may look at a record."))
    screened_blocks = models.BooleanField(
        default=False, help_text=_("From the second secret block on, prefer what lies near the boundary.")
    )
    round_size = models.PositiveIntegerField(help_text=_("Questions asked in one round."))
    selection_epsilon = models.FloatField(default=0.0, help_text=_("Scale a of the top-c weights exp(a u)."))
    selection_rate = models.FloatField(
        null=True, blank=True, help_text=_("Public probability that a record is in the first secret block.")
    )
    block_hours = models.PositiveIntegerField(
        default=168, help_text=_("Hours after which a secret block closes, whatever is answered by then.")
    )

    question_kind = models.CharField(max_length=10, choices=QuestionKind.choices, default=QuestionKind.CHOOSE)
    drop_unselected = models.BooleanField(
        default=False, help_text=_("Keep no record of a stream that nobody is asked about.")
    )
    update_policy = models.CharField(max_length=12, choices=UpdatePolicy.choices, default=UpdatePolicy.PER_ROUND)
    window_length = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Records of a stream's window, questions of a batch, records of block 1.")
    )
    window_denominator = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Public number a hidden window's sum is divided by.")
    )
    window_hours = models.PositiveIntegerField(
        default=24, help_text=_("Hours after which a window or batch makes its update, whatever is answered.")
    )
    windows_ahead = models.PositiveSmallIntegerField(
        default=1, help_text=_("Windows or batches that may wait for answers while further records are examined.")
    )
    updates_per_release = models.PositiveIntegerField(
        default=1, help_text=_("Updates after which a model of a stream is released.")
    )
    noise_sigma = models.FloatField(null=True, blank=True, help_text=_("Noise of each coordinate of a gradient."))
    expected_answers = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Public number of answers for which online learning sets its step.")
    )
    step_size = models.FloatField(null=True, blank=True, help_text=_("Constant step of mini-batch learning."))
    weight_radius = models.FloatField(null=True, blank=True, help_text=_("Radius of the ball that holds the weights."))
    average_iterates = models.BooleanField(default=True, help_text=_("Release the average of all iterates."))

    estimator = models.CharField(max_length=30, choices=Estimator.choices, default=Estimator.LOGISTIC)
    smoothing = models.FloatField(default=0.5, help_text=_("Half width of the bend of the Huber loss."))
    training_epsilon = models.FloatField(help_text=_("Epsilon of one release."))
    training_delta = models.FloatField(default=0.0, help_text=_("Delta of one release; Gaussian noise needs it."))
    regularization = models.FloatField(help_text=_("Public regularisation of the summed objective."))
    labels_per_release = models.PositiveIntegerField(help_text=_("Newly done questions that trigger a training."))
    maximum_releases = models.PositiveIntegerField(null=True, blank=True)
    labels_used_through = models.BigIntegerField(
        default=0, help_text=_("Consensuses up to this id were given to a training; they never change.")
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

    labels_limit = models.PositiveIntegerField(null=True, blank=True, help_text=_("Answers to ask for in all."))
    money_limit = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    price_per_label = models.DecimalField(max_digits=10, decimal_places=4, null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    second_manager = models.BooleanField(
        default=False, help_text=_("A higher limit of an account needs the approval of a second manager.")
    )

    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="annotation_project_overlap", condition=Q(overlap__gte=1)),
            models.CheckConstraint(name="annotation_project_round_size", condition=Q(round_size__gte=1)),
            models.CheckConstraint(
                name="annotation_project_crowd_has_gate",
                condition=Q(oracle="trusted", labels_account=None)
                | Q(
                    SAMPLED_GATE | THRESHOLD_GATE,
                    oracle="crowd",
                    data_kind="text",
                    gate_epsilon__isnull=False,
                    gate_epsilon__gt=0,
                    labels_account__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="annotation_project_money_has_price",
                condition=Q(price_per_label=None, money_limit=None)
                | Q(Q(money_limit=None) | Q(money_limit__gte=0), price_per_label__isnull=False, price_per_label__gt=0),
            ),
            # How many a secret block or a hidden window asks is secret, and stopping at a limit would tell.
            models.CheckConstraint(
                name="annotation_project_limit_tells_nothing",
                condition=~Q(selection="secret_sample") & ~Q(update_policy="flsw_hidden")
                | Q(labels_limit=None, money_limit=None),
            ),
            # Top-c reads records; uncertainty without noise may read only what the gate let through; nobody outside may
            # see what a secret sample asks.
            models.CheckConstraint(
                name="annotation_project_selection_fits_oracle",
                condition=Q(selection="random")
                | Q(selection="top_c", oracle="trusted", selection_epsilon__gt=0)
                | Q(selection="uncertainty", oracle="crowd")
                | Q(
                    selection="secret_sample",
                    oracle="trusted",
                    selection_rate__isnull=False,
                    selection_rate__gt=0,
                    selection_rate__lt=1,
                )
                | Q(
                    PUBLIC_RATE,
                    selection__in=("exposure_capped_screen", "bernoulli_screen", "version_space_screen"),
                    oracle="trusted",
                )
                | Q(
                    selection="exponential_screen",
                    oracle="trusted",
                    selection_epsilon__gt=0,
                    exponential_threshold__gt=0,
                )
                | Q(selection="all", oracle="trusted", arrival="stream"),
            ),
            models.CheckConstraint(name="annotation_project_exposures", condition=Q(exposures__gte=1)),
            models.CheckConstraint(
                name="annotation_project_training_delta",
                condition=Q(training_delta__gte=0, training_delta__lt=1)
                & (
                    Q(estimator__in=GAUSSIAN_ESTIMATORS, training_delta__gt=0)
                    | ~Q(estimator__in=GAUSSIAN_ESTIMATORS) & Q(training_delta=0)
                ),
            ),
            # Only principal directions look at records, so only they cost anything.
            models.CheckConstraint(
                name="annotation_project_features_fit_data",
                condition=Q(features="standard", features_epsilon=None)
                | Q(features="encoder", data_kind="text", features_epsilon=None)
                | Q(
                    features="principal",
                    data_kind="image",
                    oracle="trusted",
                    features_epsilon__isnull=False,
                    features_epsilon__gt=0,
                ),
            ),
            models.CheckConstraint(name="annotation_project_block_hours", condition=Q(block_hours__gte=1)),
            models.CheckConstraint(
                name="annotation_project_stream",
                condition=Q(
                    arrival="pool",
                    question_kind="choose",
                    update_policy__in=("per_round", "doubling"),
                    window_length=None,
                )
                | Q(
                    STREAM_POLICY,
                    arrival="stream",
                    oracle="trusted",
                    selection__in=("all", "bernoulli_screen", "exponential_screen"),
                    estimator__in=("minibatch_svm", "mi_ogd", "bandit_ogd"),
                    overlap=1,
                    window_hours__gte=1,
                    windows_ahead__gte=1,
                    updates_per_release__gte=1,
                ),
            ),
            # Only a stream with two rates has updates and a slab that they can make narrower.
            models.CheckConstraint(
                name="annotation_project_screen_shrinks",
                condition=Q(screen_shrinks=False) | Q(arrival="stream", selection="bernoulli_screen"),
            ),
            # What asks for confirmations learns from them, and nothing else can.
            models.CheckConstraint(
                name="annotation_project_confirm_is_bandit",
                condition=Q(question_kind="confirm", estimator="bandit_ogd")
                | ~Q(question_kind="confirm") & ~Q(estimator="bandit_ogd"),
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


class Role(models.TextChoices):
    """What a member may do in a project."""

    ANNOTATOR = "annotator", _("annotator")
    MANAGER = "manager", _("manager")
    ENGINEER = "engineer", _("engineer")


class Membership(models.Model):
    """One person's role in one project."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    guidelines_seen = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Version the person knows; null before the first question.")
    )
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_reason = models.CharField(max_length=10, choices=PauseReason.choices, blank=True)
    judged_from = models.DateTimeField(null=True, blank=True, help_text=_("Earlier checks no longer count."))
    is_direct = models.BooleanField(
        default=True, db_default=True, help_text=_("Given to this person; else only groups give it.")
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("project", "user", "role"), name="annotation_membership_once"),)

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"


class ApiToken(models.Model):
    """A bearer token of one person, stored only as a digest."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class WorkState(models.TextChoices):
    """How far a piece of long work is."""

    WAITING = "waiting", _("waiting")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")


class Job(models.Model):
    """Long work with progress: whoever runs it renews `leased_until`; a lapsed lease lets another worker take over."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(
        Project, models.CASCADE, related_name="jobs", null=True, help_text=_("None for a project not opened yet.")
    )
    kind = models.CharField(max_length=30)
    state = models.CharField(max_length=10, choices=WorkState.choices, default=WorkState.WAITING)
    progress_done = models.BigIntegerField(default=0)
    progress_total = models.BigIntegerField(null=True, blank=True)
    message = models.CharField(max_length=300, blank=True)
    error = models.CharField(max_length=1000, blank=True)
    attempt = models.PositiveSmallIntegerField(default=0)
    leased_until = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True, help_text=_("When the newest attempt began."))
    cancelled_by = models.CharField(max_length=150, db_default="", blank=True, help_text=_("Who asked it to stop."))
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="annotation_job_progress", condition=Q(progress_done__gte=0)),
            # A plan of a project that is not opened yet is nobody else's; whoever works for a project is its own.
            models.CheckConstraint(
                name="annotation_job_project", condition=Q(project__isnull=False) | Q(kind="simulate")
            ),
            models.CheckConstraint(
                name="annotation_job_finished", condition=Q(state__in=("done", "failed")) ^ Q(finished_at=None)
            ),
        )
        indexes = (
            models.Index(
                fields=("leased_until",), condition=~Q(state__in=("done", "failed")), name="annotation_job_open"
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class DatasetRole(models.TextChoices):
    """What a dataset is for: public ones may be looked at freely; `charged_start` is private and pays by itself."""

    POOL = "pool", _("private pool")
    PUBLIC_TEST = "public_test", _("public test set")
    PUBLIC_START = "public_start", _("public examples that start the first model")
    CHARGED_START = "charged_start", _("private examples that start the first model")


class DatasetState(models.TextChoices):
    """How far an upload is; only `ready` rows take part in anything."""

    RECEIVING = "receiving", _("receiving")
    READY = "ready", _("ready")
    REFUSED = "refused", _("refused")


class BadRows(models.TextChoices):
    """What to do with rows that cannot be read."""

    KEEP_GOOD = "keep_good", _("keep the good rows, list the bad ones")
    REFUSE_ALL = "refuse_all", _("refuse the whole upload if any row is bad")


class Dataset(models.Model):
    """One upload; in a crowd project one gate epoch."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="datasets")
    job = models.OneToOneField(Job, models.PROTECT, related_name="dataset")
    gate_job = models.OneToOneField(Job, models.PROTECT, related_name="gated_dataset", null=True, blank=True)
    name = models.CharField(max_length=200)
    role = models.CharField(max_length=13, choices=DatasetRole.choices, default=DatasetRole.POOL)
    state = models.CharField(max_length=10, choices=DatasetState.choices, default=DatasetState.RECEIVING)
    bad_rows = models.CharField(max_length=12, choices=BadRows.choices, default=BadRows.KEEP_GOOD)
    upload = models.FileField(max_length=300, blank=True, help_text=_("The file as sent; empty once it was read."))
    mapping = models.JSONField(default=dict, help_text=_("Which column holds text, contributor, label."))
    pixels = models.FileField(max_length=300, blank=True, help_text=_("uint8 .npy of shape (rows, height, width)."))
    pixels_sha256 = models.CharField(max_length=64, blank=True)
    row_count = models.BigIntegerField(default=0)
    bad_row_count = models.BigIntegerField(default=0)
    bad_row_report = models.JSONField(default=list, help_text=_("First bad rows: line, column, reason; never content."))
    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True)
    account = models.OneToOneField(
        "privacy.BudgetAccount",
        models.PROTECT,
        related_name="started_by",
        null=True,
        blank=True,
        help_text=_("Of private examples that start the first model: what they pay from."),
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("project",),
                condition=Q(role="charged_start") & ~Q(state="refused"),
                name="annotation_dataset_one_start",
            ),
            models.CheckConstraint(
                name="annotation_dataset_account", condition=Q(role="charged_start") ^ Q(account=None)
            ),
        )

    def __str__(self) -> str:
        return self.name


class Record(models.Model):
    """One row of a dataset; `row_number` is its row in the dataset's feature and pixel files."""

    # No index of its own, here and below, where another one begins with the column: each slows every write down.
    # Triggers hold the reference, once a statement: row by row it was half the time of an import.
    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="records", db_index=False, db_constraint=False)
    row_number = models.BigIntegerField()
    text = models.TextField(null=True, blank=True)  # null says: this record is no text
    payload = models.JSONField(null=True, blank=True)
    contributor = models.BinaryField(max_length=16, null=True, blank=True)
    label = models.PositiveSmallIntegerField(null=True, blank=True, help_text=_("Known class of a public example."))
    emptied = models.BooleanField(
        db_default=False, help_text=_("Its content is erased; the slot stays, as the empty one of the guarantee.")
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("dataset", "row_number"), name="annotation_record_row"),
            models.CheckConstraint(
                name="annotation_record_emptied",
                condition=Q(emptied=False) | Q(Q(text=None) | Q(text=""), payload=None, contributor=None, label=None),
            ),
        )

    def __str__(self) -> str:
        return f"record {self.pk}"


class RecordPost(models.Model):
    """Records that arrived at a stream together, until they are examined; as private as any record.

    `row_count` of the stream's dataset counts the slots given out; a record's slot is its row number there.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="record_posts", db_index=False)
    key = models.BinaryField(max_length=32, help_text=_("Digest of the sender's idempotency key."))
    body_digest = models.BinaryField(max_length=32, help_text=_("Keyed, so that nobody can try records out."))
    first_slot = models.BigIntegerField()
    record_count = models.PositiveIntegerField()
    body = models.BinaryField(null=True, blank=True, help_text=_("The records as JSON; null once examined."))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "key"), name="annotation_post_once"),
            models.UniqueConstraint(fields=("project", "first_slot"), name="annotation_post_slot"),
            models.CheckConstraint(name="annotation_post_not_empty", condition=Q(record_count__gte=1)),
        )
        indexes = (
            models.Index(
                fields=("project", "first_slot"), condition=Q(body__isnull=False), name="annotation_post_waiting"
            ),
        )

    def __str__(self) -> str:
        return f"post {self.pk}"


class GateState(models.TextChoices):
    """How an attempt to pass a dataset through the gate ended."""

    RUNNING = "running", _("running")
    COMMITTED = "committed", _("committed")
    LOST = "lost", _("lost: the attempt crashed and stays charged")


class GateRun(models.Model):
    """One attempt of the k-anonymity gate over one dataset; at most one commits."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="gate_runs")
    dataset = models.ForeignKey(Dataset, models.PROTECT, related_name="gate_runs")
    state = models.CharField(max_length=10, choices=GateState.choices, default=GateState.RUNNING)
    reservation = models.OneToOneField("privacy.LedgerEntry", models.PROTECT, related_name="+")
    committed_entry = models.OneToOneField(
        "privacy.LedgerEntry", models.PROTECT, related_name="+", null=True, blank=True
    )
    passed_count = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("dataset",), condition=Q(state="committed"), name="annotation_gate_once_per_dataset"
            ),
            models.CheckConstraint(
                name="annotation_gate_committed",
                condition=Q(
                    state="committed", committed_entry__isnull=False, passed_count__isnull=False, passed_count__gte=0
                )
                | (~Q(state="committed") & Q(committed_entry=None, passed_count=None)),
            ),
        )

    def __str__(self) -> str:
        return f"gate run {self.pk}"


class GateStage(models.TextChoices):
    """What a worker does with its part of an upload: one stage begins when all parts of the one before are done."""

    ROWS = "rows", _("digest a range of rows")
    PEOPLE = "people", _("cap a share of the contributors")
    TEXTS = "texts", _("count a share of the texts")
    PASSED = "passed", _("put together what reaches the minimum")


class GatePart(models.Model):
    """What one worker does for a running attempt: a range of rows, or a share of contributors or texts by hash.

    The table is unlogged, so no archive or replica ever holds it, and its rows go when the attempt ends.
    """

    run = models.ForeignKey(GateRun, models.CASCADE, related_name="parts", db_index=False)
    stage = models.CharField(max_length=10, choices=GateStage.choices)
    number = models.PositiveIntegerField()
    first_row = models.BigIntegerField(default=0)
    row_count = models.BigIntegerField(default=0)
    salt = models.BinaryField(max_length=32, help_text=_("Gives the attempt's coins, together with the site's secret."))
    done = models.BooleanField(default=False)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("run", "stage", "number"), name="annotation_gate_part_once"),)

    def __str__(self) -> str:
        return f"gate part {self.pk}"


class GatePiece(models.Model):
    """What one part hands to a part of the next stage; as private as the records, unlogged, gone once it is read."""

    run = models.ForeignKey(GateRun, models.CASCADE, related_name="pieces", db_index=False)
    stage = models.CharField(max_length=10, choices=GateStage.choices, help_text=_("The stage that reads it."))
    number = models.PositiveIntegerField(help_text=_("The part that reads it."))
    source = models.PositiveIntegerField(help_text=_("The part that made it."))
    content = models.BinaryField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("run", "stage", "number", "source"), name="annotation_gate_piece_once"),
        )

    def __str__(self) -> str:
        return f"gate piece {self.pk}"


class Survey(models.Model):
    """How often texts are said in a whole upload, for a manager's plan; as private as the upload, and gone with it."""

    dataset = models.OneToOneField(Dataset, models.CASCADE, related_name="survey")
    job = models.OneToOneField(Job, models.CASCADE, related_name="survey")
    normalizer = models.CharField(max_length=4)
    frequencies = models.JSONField(null=True, blank=True)

    def __str__(self) -> str:
        return f"survey of dataset {self.dataset_id}"


class QueryState(models.TextChoices):
    """How far a question is."""

    CANDIDATE = "candidate", _("may be asked")
    OPEN = "open", _("being asked")
    GOLD = "gold", _("hidden check with a known answer")
    CLOSED = "closed", _("answered")
    DISPUTED = "disputed", _("answered without a majority")
    WITHDRAWN = "withdrawn", _("not agreed on when its block closed")
    SET_ASIDE = "set_aside", _("set aside for a manager to look at")


class Query(models.Model):
    """What an annotator sees. In a crowd project: gate output only, never a record."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="queries", db_index=False)
    record = models.OneToOneField(Record, models.PROTECT, null=True, blank=True, related_name="query")
    gate_run = models.ForeignKey(GateRun, models.PROTECT, null=True, blank=True, related_name="queries")
    text = models.TextField(null=True, blank=True)  # null says: look at the record
    sample_count = models.BigIntegerField(null=True, blank=True)
    noisy_count = models.FloatField(null=True, blank=True, help_text=_("What the threshold gate hands out instead."))
    guess = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text=_("The class the annotator is asked to confirm.")
    )
    state = models.CharField(max_length=10, choices=QueryState.choices)
    round_number = models.PositiveIntegerField(null=True, blank=True)
    priority = models.BigIntegerField(default=0, help_text=_("Smaller is asked first."))
    overlap = models.PositiveSmallIntegerField(default=1)
    open_slots = models.SmallIntegerField(default=0)
    emptied = models.BooleanField(
        db_default=False, help_text=_("What was answered is erased; the question counts as one with an empty slot.")
    )

    class Meta:
        verbose_name_plural = "queries"
        constraints = (
            models.CheckConstraint(
                name="annotation_query_emptied", condition=Q(emptied=False) | Q(state="withdrawn", open_slots=0)
            ),
            models.CheckConstraint(
                name="annotation_query_overlap", condition=Q(open_slots__gte=0, open_slots__lte=F("overlap"))
            ),
            models.CheckConstraint(
                name="annotation_query_one_source",
                condition=Q(record__isnull=False, gate_run=None, text=None, sample_count=None, noisy_count=None)
                | Q(
                    Q(sample_count__isnull=False, sample_count__gte=2, noisy_count=None)
                    | Q(sample_count=None, noisy_count__isnull=False),
                    record=None,
                    gate_run__isnull=False,
                    text__isnull=False,
                    guess=None,
                )
                | Q(
                    state="gold",
                    record=None,
                    gate_run=None,
                    text__isnull=False,
                    sample_count=None,
                    noisy_count=None,
                    guess=None,
                ),
            ),
            # Over the digest, because an index entry holds at most 2,704 bytes and a text may be longer.
            models.UniqueConstraint(F("project"), MD5("text"), name="annotation_query_text_once"),
            models.CheckConstraint(
                name="annotation_query_asked_in_round", condition=Q(state="candidate") ^ Q(round_number__isnull=False)
            ),
        )
        indexes = (
            models.Index(
                fields=("project", "priority", "id"),
                condition=Q(state="open", open_slots__gt=0),
                name="annotation_query_queue",
            ),
            models.Index(fields=("project", "state"), name="annotation_query_state"),
        )

    def __str__(self) -> str:
        return f"query {self.pk}"


class AssignmentState(models.TextChoices):
    """How one person's turn at a question ended."""

    LEASED = "leased", _("leased")
    LABELLED = "labelled", _("labelled")
    SKIPPED = "skipped", _("skipped")
    EXPIRED = "expired", _("expired")


class Assignment(models.Model):
    """A lease of one question to one person; never the same question to the same person twice."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="assignments")
    query = models.ForeignKey(Query, models.CASCADE, related_name="assignments", db_index=False)
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="assignments")
    state = models.CharField(max_length=10, choices=AssignmentState.choices, default=AssignmentState.LEASED)
    leased_until = models.DateTimeField()
    skip_reason = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("query", "annotator"), name="annotation_assignment_once_per_person"),
            models.UniqueConstraint(
                fields=("annotator", "project"), condition=Q(state="leased"), name="annotation_assignment_one_lease"
            ),
        )
        indexes = (
            models.Index(
                fields=("annotator", "project", "finished_at"),
                condition=Q(state="labelled"),
                name="annotation_assignment_done",
            ),
            models.Index(
                fields=("annotator", "project", "finished_at"),
                condition=Q(state="skipped"),
                name="annotation_assignment_skipped",
            ),
        )

    def __str__(self) -> str:
        return f"assignment {self.pk}"


class Label(models.Model):
    """One answer; a changed mind adds a row and supersedes the old one, nothing is rewritten."""

    assignment = models.ForeignKey(Assignment, models.PROTECT, related_name="labels", db_index=False)
    query = models.ForeignKey(Query, models.PROTECT, related_name="labels")
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="labels")
    choice = models.PositiveSmallIntegerField(null=True, help_text=_("Null once the question was emptied."))
    key = models.UUIDField(null=True, blank=True, help_text=_("Of the page that sent it, so that it is stored once."))
    supersedes = models.OneToOneField("self", models.PROTECT, null=True, blank=True, related_name="superseded_by")
    superseded_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("assignment",), condition=Q(superseded_at=None), name="annotation_label_one_current"
            ),
            models.UniqueConstraint(fields=("assignment", "key"), name="annotation_label_key_once"),
        )

    def __str__(self) -> str:
        return f"label {self.pk}"


class Consensus(models.Model):
    """What the annotators of one question agree on; learning uses these and nothing else."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="consensuses", db_index=False)
    query = models.OneToOneField(Query, models.PROTECT, related_name="consensus")
    choice = models.PositiveSmallIntegerField()
    votes = models.PositiveSmallIntegerField()
    agreeing = models.PositiveSmallIntegerField()
    settled_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "consensuses"
        constraints = (
            models.CheckConstraint(
                name="annotation_consensus_majority",
                condition=Q(agreeing__lte=F("votes")) & (Q(agreeing__gte=1) | Q(settled_by__isnull=False))
                # Of an emptied question: it still counts, and says nothing.
                | Q(votes=0, agreeing=0, choice=0, settled_by=None),
            ),
        )
        indexes = (models.Index(fields=("project", "id"), name="annotation_consensus_project"),)

    def __str__(self) -> str:
        return f"consensus {self.pk}"


class Guidelines(models.Model):
    """One version of what annotators are told; a change is a new version. The examples are made up, never records."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="guideline_versions", db_index=False)
    version = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    examples = models.JSONField(default=list, help_text=_("Objects with text, choice and reason."))
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "guidelines"
        constraints = (models.UniqueConstraint(fields=("project", "version"), name="annotation_guidelines_version"),)

    def __str__(self) -> str:
        return f"guidelines {self.version} of {self.project}"


class ReportKind(models.TextChoices):
    """What somebody says about a question beside an answer."""

    BROKEN = "broken", _("broken")
    SENSITIVE = "sensitive", _("sensitive")
    COMMENT = "comment", _("comment")


class Report(models.Model):
    """A flag or a comment on a question, for the project's managers."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="reports", db_index=False)
    query = models.ForeignKey(Query, models.CASCADE, related_name="reports")
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    kind = models.CharField(max_length=10, choices=ReportKind.choices)
    comment = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("query", "annotator", "kind"),
                condition=~Q(kind="comment") & Q(resolved_at=None),
                name="annotation_report_flag_once",
            ),
            models.CheckConstraint(
                name="annotation_report_resolved",
                condition=Q(resolved_at=None, resolved_by=None)
                | Q(resolved_at__isnull=False, resolved_by__isnull=False),
            ),
            models.CheckConstraint(
                name="annotation_report_comment_says_something", condition=~Q(kind="comment", comment="")
            ),
        )
        indexes = (
            models.Index(fields=("project", "id"), condition=Q(resolved_at=None), name="annotation_report_open"),
        )

    def __str__(self) -> str:
        return f"report {self.pk}"


class Encounter(models.Model):
    """A contributor whose records a person was shown; kept where a project limits how many those may be.

    A record without a contributor counts as one of its own.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False)
    contributor = models.BinaryField(max_length=16)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "annotator", "contributor"), name="annotation_encounter_once"),
        )

    def __str__(self) -> str:
        return f"encounter {self.pk}"
