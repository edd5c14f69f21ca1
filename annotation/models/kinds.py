"""What a project can be: who answers, how records come, what they are made of, and what is chosen for it."""

from enum import StrEnum

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
    """How a round chose what to ask, as its row says; `learner.strategies` has one class for each."""

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


class Estimator(StrEnum):
    """Estimators that code names; the learner's catalogue has all of them, with their labels."""

    MINIBATCH_SVM = "minibatch_svm"
    BANDIT_OGD = "bandit_ogd"


class UpdatePolicy(StrEnum):
    """When answers become an update or a training; `annotation.choices.update_policies` declares each."""

    PER_ROUND = "per_round"
    DOUBLING = "doubling"
    IMMEDIATE = "immediate"
    FLSW = "flsw"
    FLSW_HIDDEN = "flsw_hidden"
    FLMB = "flmb"


class ProjectState(models.TextChoices):
    """Whether questions are handed out."""

    ACTIVE = "active", _("active")
    PAUSED = "paused", _("paused")
    ARCHIVED = "archived", _("archived")
    DELETED = "deleted", _("deleted")


class Features(StrEnum):
    """Featurisers that code names; the learner's catalogue has all of them, with their labels."""

    STANDARD = "standard"
    PRINCIPAL = "principal"
