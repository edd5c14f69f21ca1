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


class Selection(StrEnum):
    """Strategies that code names; the learner's catalogue has all of them, with their labels."""

    RANDOM = "random"
    # No choice of a project: what a round asks again.
    REPEAT_VOTES = "repeat_votes"


class ProjectState(models.TextChoices):
    """Whether questions are handed out."""

    ACTIVE = "active", _("active")
    PAUSED = "paused", _("paused")
    ARCHIVED = "archived", _("archived")
    DELETED = "deleted", _("deleted")


class Features(StrEnum):
    """Featurisers that code names; the learner's catalogue has all of them, with their labels."""

    STANDARD = "standard"
