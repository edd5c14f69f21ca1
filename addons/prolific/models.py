"""Studies on a crowd platform: the account that opens them, who came, what was decided, and what is paid on top."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models.joining import CrowdLink
from annotation.models.numbered import NumberedModel
from annotation.models.projects import Project
from privacy.message_fields import MessageField


class PlatformAccount(models.Model):
    project = models.OneToOneField(Project, models.CASCADE, related_name="platform_account")
    sealed_token = models.TextField()
    fee_percent = models.DecimalField(max_digits=5, decimal_places=2, help_text="What the platform adds to a pay.")
    currency = models.CharField(max_length=3, blank=True, help_text="As the platform says it; empty until it did.")
    fault = MessageField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="prolific_platformaccount_fee", condition=Q(fee_percent__gte=0, fee_percent__lte=100)
            ),
            models.CheckConstraint(name="prolific_platformaccount_token", condition=~Q(sealed_token="")),
        )

    def __str__(self) -> str:
        return f"platform account of {self.project_id}"


class StudyState(models.TextChoices):
    """State of a study in the platform's words (English); the first is before it knows of it, the last is ours."""

    WAITING = "", "not opened yet"
    UNPUBLISHED = "UNPUBLISHED", "draft"
    PUBLISHING = "PUBLISHING", "being published"
    SCHEDULED = "SCHEDULED", "scheduled"
    ACTIVE = "ACTIVE", "open"
    PAUSED = "PAUSED", "paused"
    AWAITING_REVIEW = "AWAITING REVIEW", "waiting for your decisions"
    COMPLETED = "COMPLETED", "done"
    DISCARDED = "DISCARDED", "discarded"


# While people are in it, or may come.
BUSY = (StudyState.PUBLISHING, StudyState.SCHEDULED, StudyState.ACTIVE, StudyState.PAUSED)


class StudyStep(models.TextChoices):
    PUBLISH = "PUBLISH", _("Publish")
    PAUSE = "PAUSE", _("Pause")
    START = "START", _("Resume")
    STOP = "STOP", _("Stop for good")
    DISCARD = "DISCARD", _("Discard")


class CrowdStudy(NumberedModel):
    """A study with its places and its pay; the key names it to the platform, which has no record of this site."""

    key = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="crowd_studies")
    link = models.OneToOneField(CrowdLink, models.PROTECT, related_name="opened_study")
    salt = models.BinaryField(
        max_length=32, null=True, help_text="The link's secret is made from it, until it is told."
    )
    name = models.CharField(max_length=120)
    description = models.TextField(max_length=3000)
    places = models.PositiveIntegerField()
    reward_cents = models.PositiveIntegerField(help_text="Pay of a place, in hundredths of the currency.")
    minutes = models.PositiveIntegerField(help_text="How long one takes, as participants are told.")
    fee_percent = models.DecimalField(max_digits=5, decimal_places=2)
    external_id = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=20, choices=StudyState.choices, blank=True, default=StudyState.WAITING)
    wanted = models.CharField(max_length=10, choices=StudyStep.choices, blank=True)
    tried_at = models.DateTimeField(null=True, blank=True, help_text="When its opening was first asked for.")
    places_taken = models.PositiveIntegerField(default=0)
    approved = models.PositiveIntegerField(default=0)
    forgotten_bonus_cents = models.PositiveIntegerField(default=0, help_text="Bonuses whose rows were forgotten.")
    fault = MessageField()
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(null=True, blank=True, db_index=True, help_text="When the platform is asked next.")
    leased_until = models.DateTimeField(null=True, blank=True, help_text="While a worker is at it.")
    followed_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "crowd studies"
        constraints = (
            models.CheckConstraint(
                name="prolific_crowdstudy_amounts",
                condition=Q(places__gte=1, reward_cents__gte=1, minutes__gte=1, fee_percent__gte=0)
                & Q(fee_percent__lte=100),
            ),
            models.UniqueConstraint(
                fields=("external_id",), condition=~Q(external_id=""), name="prolific_crowdstudy_opened_once"
            ),
            # Once the platform knows the link, its secret is made from nothing here.
            models.CheckConstraint(
                name="prolific_crowdstudy_keeps_no_secret", condition=Q(external_id="") | Q(salt=None)
            ),
        )


class CrowdSubmission(models.Model):
    """One person's way through a study: the platform's id of it, which is needed to pay, and a hash of theirs."""

    study = models.ForeignKey(CrowdStudy, models.CASCADE, related_name="submissions")
    external_id = models.CharField(max_length=64)
    pid_digest = models.BinaryField(max_length=16)
    state = models.CharField(max_length=20)
    has_code = models.BooleanField(default=False, help_text="Whether the right completion code was handed in.")
    return_asked = models.BooleanField(default=False)
    bonus_cents = models.PositiveIntegerField(default=0, help_text="What the platform says was paid on top.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (models.UniqueConstraint(fields=("study", "external_id"), name="prolific_crowdsubmission_once"),)

    def __str__(self) -> str:
        return f"submission {self.pk}"


class VerdictKind(models.TextChoices):
    APPROVE = "APPROVE", _("Approve")
    REJECT = "REJECT", _("reject")
    RETURN = "RETURN", _("ask to return it")


# Why a submission is rejected, by the platform's words (English).
REJECTION_REASONS = {
    "FAILED_CHECK": "failed checks",
    "FAILED_INSTRUCTIONS": "did not follow the instructions",
    "LOW_EFFORT": "little effort",
    "TOO_QUICKLY": "far too quick",
    "TOO_SLOWLY": "far too slow",
    "NO_CODE": "no completion code",
    "BAD_CODE": "wrong completion code",
    "NO_DATA": "no answers",
    "INCOMP_LONGITUDINAL": "a part is missing",
    "UNSUPP_DEVICE": "device that does not work",
    "MALINGERING": "pretence",
    "OTHER": "something else",
}


class DeedState(models.TextChoices):
    """State of a request to the platform, which is written down before it is sent."""

    WANTED = "wanted", _("waiting")
    DONE = "done", _("done")
    REFUSED = "refused", _("refused")


class CrowdVerdict(models.Model):
    submission = models.ForeignKey(CrowdSubmission, models.CASCADE, related_name="verdicts")
    kind = models.CharField(max_length=10, choices=VerdictKind.choices)
    category = models.CharField(max_length=24, blank=True)
    reason = models.TextField(max_length=1000, blank=True, help_text="To the participant; forgotten once it is sent.")
    state = models.CharField(max_length=10, choices=DeedState.choices, default=DeedState.WANTED)
    fault = MessageField()
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("submission",),
                condition=Q(kind__in=("APPROVE", "REJECT")) & ~Q(state="refused"),
                name="prolific_verdict_final_once",
            ),
            models.UniqueConstraint(
                fields=("submission",),
                condition=Q(kind="RETURN") & ~Q(state="refused"),
                name="prolific_verdict_return_once",
            ),
            models.CheckConstraint(
                name="prolific_verdict_says_why",
                condition=Q(kind="APPROVE", reason="", category="")
                | ~Q(kind="APPROVE") & (Q(state="wanted") & ~Q(reason="") | ~Q(state="wanted") & Q(reason="")),
            ),
        )

    def __str__(self) -> str:
        return f"verdict {self.pk}"


class BonusState(models.TextChoices):
    """State of a sheet of bonuses; a payment whose answer was lost is unclear until the platform shows it."""

    WANTED = "wanted", _("waiting")
    PAYING = "paying", _("being paid")
    PAID = "paid", _("paid")
    UNCLEAR = "unclear", _("unclear")
    REFUSED = "refused", _("refused")


class BonusSheet(NumberedModel):
    """Bonuses given together; the key is made with the form, so that one sent twice is one."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    study = models.ForeignKey(CrowdStudy, models.CASCADE, related_name="bonus_sheets")
    state = models.CharField(max_length=10, choices=BonusState.choices, default=BonusState.WANTED)
    external_id = models.CharField(max_length=64, blank=True)
    paying_at = models.DateTimeField(null=True, blank=True)
    fault = MessageField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            # What was paid before and after is compared, so that only one may be under way.
            models.UniqueConstraint(
                fields=("study",),
                condition=Q(state__in=("wanted", "paying", "unclear")),
                name="prolific_bonussheet_one_at_a_time",
            ),
            models.CheckConstraint(
                name="prolific_bonussheet_set_up_first",
                condition=Q(state__in=("wanted", "refused")) | ~Q(external_id="") & Q(paying_at__isnull=False),
            ),
        )


class BonusLine(models.Model):
    """One participant's bonus, and what the platform said was paid to them on top before."""

    sheet = models.ForeignKey(BonusSheet, models.CASCADE, related_name="lines")
    submission = models.ForeignKey(CrowdSubmission, models.CASCADE, related_name="bonuses")
    amount_cents = models.PositiveIntegerField()
    before_cents = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("sheet", "submission"), name="prolific_bonusline_once"),
            models.CheckConstraint(name="prolific_bonusline_amount", condition=Q(amount_cents__gte=1)),
        )

    def __str__(self) -> str:
        return f"bonus {self.pk}"
