"""What a project can be: who answers, how records come, what they are made of, and what is chosen for it."""

from django.db import models
from django.utils.translation import gettext_lazy as _


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
    CLUSTERED_UNCERTAINTY = (
        "clustered_uncertainty",
        _("what an answer would tell most, spread over all that passed the gate"),
    )
    ALL = "all", _("every record of a stream")
    REPEAT_VOTES = "repeat_votes", _("more answers to doubtful questions")


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


class ProjectState(models.TextChoices):
    """Whether questions are handed out."""

    ACTIVE = "active", _("active")
    PAUSED = "paused", _("paused")
    ARCHIVED = "archived", _("archived")
    DELETED = "deleted", _("deleted")


class Features(models.TextChoices):
    """How records become vectors."""

    STANDARD = "standard", _("declared rules: hashed words, bounds and categories, pooled pixels")
    ENCODER = "encoder", _("a public sentence encoder")
    PRINCIPAL = "principal", _("principal directions of the images, found privately")
