"""Populations: people whose records lie in several projects and lose the sum of what these spend."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from privacy.models.ledger import BudgetAccount


class Population(models.Model):
    """A set of people under one key of pseudonyms, with one account that every project of theirs pays from as well."""

    slug = models.SlugField(unique=True, max_length=60)
    name = models.CharField(max_length=120)
    account = models.OneToOneField(BudgetAccount, models.PROTECT, related_name="population")
    key_fingerprint = models.CharField(
        max_length=32, help_text="Of the key by which its people are told from each other."
    )
    opened_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(name="privacy_population_named", condition=~Q(slug="") & ~Q(name="")),
            models.CheckConstraint(name="privacy_population_key", condition=Q(key_fingerprint__regex="^[0-9a-f]{32}$")),
        ]

    def __str__(self) -> str:
        return self.name


class Quota(models.Model):
    """An account that belongs to a population for good: its limit is what it may take of the common one at most."""

    population = models.ForeignKey(Population, models.PROTECT, related_name="quotas")
    account = models.OneToOneField(BudgetAccount, models.PROTECT, related_name="quota")
    records_per_person = models.PositiveIntegerField()
    joined_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="privacy_quota_declared",
                condition=Q(records_per_person__gte=1, records_per_person__lte=10_000),
            ),
        ]

    def __str__(self) -> str:
        return f"quota {self.pk}"
