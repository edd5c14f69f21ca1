"""Who manages a population, and what waits for another of its managers."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models.limits import RequestState
from privacy.accounting.units import atto_spendable, nano_spendable


class PopulationRequestKind(models.TextChoices):
    """What is asked for."""

    LIMIT = "limit", _("a higher limit")
    MANAGER = "manager", _("a further manager")


class PopulationManager(models.Model):
    """Somebody who decides, never alone, about the limit that people of several projects share."""

    population = models.ForeignKey("privacy.Population", models.PROTECT, related_name="managers")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    appointed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("population", "user"), name="annotation_populationmanager_once"),
        )

    def __str__(self) -> str:
        return f"manager {self.pk} of a population"


class PopulationRequest(models.Model):
    """One manager's wish that another has to grant; an approval is used up by the change it allows."""

    population = models.ForeignKey("privacy.Population", models.PROTECT, related_name="requests")
    kind = models.CharField(max_length=7, choices=PopulationRequestKind.choices)
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
            models.CheckConstraint(
                name="annotation_populationrequest_shape",
                condition=Q(
                    kind="limit", epsilon_limit_nano__isnull=False, delta_limit_atto__isnull=False, appointee=None
                )
                | Q(kind="manager", epsilon_limit_nano=None, delta_limit_atto=None, appointee__isnull=False),
            ),
            models.CheckConstraint(name="annotation_populationrequest_reason", condition=~Q(reason="")),
            models.CheckConstraint(
                name="annotation_populationrequest_second",
                condition=Q(state="open", decided_by=None, decided_at=None)
                | Q(state="expired", decided_by=None, decided_at__isnull=False)
                | Q(state="withdrawn", decided_by=F("requested_by"), decided_at__isnull=False)
                | Q(
                    ~Q(decided_by=F("requested_by")),
                    state__in=("approved", "refused"),
                    decided_by__isnull=False,
                    decided_at__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="annotation_populationrequest_in_time",
                condition=~Q(state="approved") | Q(decided_at__lte=F("expires_at")),
            ),
            models.CheckConstraint(
                name="annotation_populationrequest_used", condition=Q(used_at=None) | Q(state="approved")
            ),
            models.UniqueConstraint(
                fields=("population",),
                condition=Q(state="open", kind="limit"),
                name="annotation_populationrequest_one_open",
            ),
            models.UniqueConstraint(
                fields=("population", "appointee"),
                condition=Q(state="open", kind="manager"),
                name="annotation_populationrequest_one_person",
            ),
        )

    @property
    def epsilon_limit(self) -> float:
        """The epsilon asked for."""
        return nano_spendable(self.epsilon_limit_nano or 0)

    @property
    def delta_limit(self) -> float:
        """The delta asked for."""
        return atto_spendable(self.delta_limit_atto or 0)

    def __str__(self) -> str:
        return f"request {self.pk} of a population"
