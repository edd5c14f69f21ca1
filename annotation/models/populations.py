"""Managers of a population and their requests."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models.limits import DECIDED_BY_ANOTHER, Wish
from privacy.accounting.units import atto_spendable, nano_spendable


class PopulationRequestKind(models.TextChoices):
    LIMIT = "limit", _("a higher limit")
    MANAGER = "manager", _("a further manager")


class PopulationManager(models.Model):
    population = models.ForeignKey("privacy.Population", models.PROTECT, related_name="managers")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    appointed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("population", "user"), name="annotation_populationmanager_once"),
        )

    def __str__(self) -> str:
        return f"manager {self.pk} of a population"


class PopulationRequest(Wish):
    population = models.ForeignKey("privacy.Population", models.PROTECT, related_name="requests")
    kind = models.CharField(max_length=7, choices=PopulationRequestKind.choices)

    class Meta(Wish.Meta):
        constraints = (
            *Wish.Meta.constraints,
            models.CheckConstraint(
                name="annotation_populationrequest_shape",
                condition=Q(
                    kind="limit", epsilon_limit_nano__isnull=False, delta_limit_atto__isnull=False, appointee=None
                )
                | Q(kind="manager", epsilon_limit_nano=None, delta_limit_atto=None, appointee__isnull=False),
            ),
            models.CheckConstraint(name="annotation_populationrequest_second", condition=DECIDED_BY_ANOTHER),
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
        return nano_spendable(self.epsilon_limit_nano or 0)

    @property
    def delta_limit(self) -> float:
        return atto_spendable(self.delta_limit_atto or 0)

    def __str__(self) -> str:
        return f"request {self.pk} of a population"
