"""Raised limits and further managers that wait for a second manager."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models.numbered import NumberedModel
from privacy.accounting.cost import atto_shown, nano_shown


class RequestKind(models.TextChoices):
    LIMIT = "limit", _("a higher limit")
    ALONE = "alone", _("one manager deciding alone")
    MANAGER = "manager", _("a further manager")


class RequestState(models.TextChoices):
    OPEN = "open", _("open")
    APPROVED = "approved", _("approved")
    REFUSED = "refused", _("refused")
    WITHDRAWN = "withdrawn", _("withdrawn")
    EXPIRED = "expired", _("expired")


# Who asked for it may take it back and nothing else.
DECIDED_BY_ANOTHER = (
    Q(state=RequestState.OPEN, decided_by=None, decided_at=None)
    | Q(state=RequestState.EXPIRED, decided_by=None, decided_at__isnull=False)
    | Q(state=RequestState.WITHDRAWN, decided_by=F("requested_by"), decided_at__isnull=False)
    | Q(
        ~Q(decided_by=F("requested_by")),
        state__in=(RequestState.APPROVED, RequestState.REFUSED),
        decided_by__isnull=False,
        decided_at__isnull=False,
    )
)


class LimitRequest(NumberedModel):
    """Request of one manager of a project, or of a common account; an approval allows one change."""

    project = models.ForeignKey(
        "annotation.Project", models.PROTECT, related_name="limit_requests", null=True, blank=True
    )
    kind = models.CharField(max_length=7, choices=RequestKind.choices)
    account = models.ForeignKey("privacy.BudgetAccount", models.PROTECT, related_name="+", null=True, blank=True)
    epsilon_limit_nano = models.BigIntegerField(null=True, blank=True)
    delta_limit_atto = models.BigIntegerField(null=True, blank=True)
    appointee = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True)
    reason = models.CharField(max_length=300)
    state = models.CharField(max_length=9, choices=RequestState.choices, default=RequestState.OPEN)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    requested_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True, help_text="When the change it allows was made.")

    class Meta:
        constraints = (
            models.CheckConstraint(name="annotation_limitrequest_reason", condition=~Q(reason="")),
            models.CheckConstraint(
                name="annotation_limitrequest_in_time",
                condition=~Q(state=RequestState.APPROVED) | Q(decided_at__lte=F("expires_at")),
            ),
            models.CheckConstraint(
                name="annotation_limitrequest_used", condition=Q(used_at=None) | Q(state=RequestState.APPROVED)
            ),
            models.CheckConstraint(
                name="annotation_limitrequest_shape",
                condition=Q(
                    kind=RequestKind.LIMIT,
                    account__isnull=False,
                    epsilon_limit_nano__isnull=False,
                    delta_limit_atto__isnull=False,
                    appointee=None,
                )
                | Q(
                    kind=RequestKind.ALONE,
                    project__isnull=False,
                    account=None,
                    epsilon_limit_nano=None,
                    delta_limit_atto=None,
                    appointee=None,
                )
                | Q(
                    ~Q(appointee=F("requested_by")),
                    Q(project=None, account__isnull=False) | Q(project__isnull=False, account=None),
                    kind=RequestKind.MANAGER,
                    epsilon_limit_nano=None,
                    delta_limit_atto=None,
                    appointee__isnull=False,
                ),
            ),
            models.CheckConstraint(name="annotation_limitrequest_second_person", condition=DECIDED_BY_ANOTHER),
            models.UniqueConstraint(
                fields=("account",),
                condition=Q(state=RequestState.OPEN, kind=RequestKind.LIMIT),
                name="annotation_limitrequest_one_open",
            ),
            models.UniqueConstraint(
                fields=("project",),
                condition=Q(state=RequestState.OPEN, kind=RequestKind.ALONE),
                name="annotation_limitrequest_one_alone",
            ),
            models.UniqueConstraint(
                fields=("project", "account", "appointee"),
                condition=Q(state=RequestState.OPEN, kind=RequestKind.MANAGER),
                nulls_distinct=False,
                name="annotation_limitrequest_one_person",
            ),
        )

    @property
    def epsilon_limit(self) -> float | None:
        return None if self.epsilon_limit_nano is None else nano_shown(self.epsilon_limit_nano)

    @property
    def delta_limit(self) -> float | None:
        return None if self.delta_limit_atto is None else atto_shown(self.delta_limit_atto)

    def __str__(self) -> str:
        return f"request {self.pk}"


class BudgetManager(models.Model):
    """Somebody who decides, never alone, about the limit of an account over several projects."""

    account = models.ForeignKey("privacy.BudgetAccount", models.PROTECT, related_name="managers")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    appointed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (models.UniqueConstraint(fields=("account", "user"), name="annotation_budgetmanager_once"),)

    def __str__(self) -> str:
        return f"manager {self.pk}"
