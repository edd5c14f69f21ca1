"""Kinds of projects and their parts."""

from enum import StrEnum

from django.db import models
from django.utils.translation import gettext_lazy as _


class Oracle(models.TextChoices):
    TRUSTED = "trusted", _("trusted: annotators see the records")
    CROWD = "crowd", _("crowd: annotators see only what passed the gate")


class Arrival(models.TextChoices):
    POOL = "pool", _("pool: uploads, asked in rounds")
    STREAM = "stream", _("stream: records posted one by one, each examined once")


class DataKind(models.TextChoices):
    TEXT = "text", _("text")
    TABLE = "table", _("table of declared columns")
    IMAGE = "image", _("image")


class PrivacyUnit(models.TextChoices):
    RECORD = "record", _("one record")
    CONTRIBUTOR = "contributor", _("everything of one contributor")


class Selection(StrEnum):
    """Strategies that code names; the learner's catalogue has all of them."""

    RANDOM = "random"
    # No choice of a project: what a round asks again.
    REPEAT_VOTES = "repeat_votes"


class ProjectState(models.TextChoices):
    ACTIVE = "active", _("active")
    PAUSED = "paused", _("paused")
    ARCHIVED = "archived", _("archived")
    DELETED = "deleted", _("deleted")


class Features(StrEnum):
    """Featurisers that code names; the learner's catalogue has all of them."""

    STANDARD = "standard"


class Aggregation(models.TextChoices):
    MAJORITY = "majority", _("majority: every answer counts the same")
    DAWID_SKENE = "dawid_skene", _("Dawid-Skene: learns which classes each person mixes up")
    MACE = "mace", _("MACE: learns who guesses")
