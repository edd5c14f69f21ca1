"""Tables of the ledger: accounts, their entries, the counter they belong to, and budgets over several projects."""

# Rules that must hold whoever writes are constraints here or triggers in `migrations/sql/`. The triggers fill in
# sequence, totals, hashes and time, so such fields carry database defaults.

import json
from functools import cached_property
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from privacy.ledger.auditor.chain import NO_HASH
from privacy.ledger.rules import OPENED_ONCE
from privacy.message_fields import MessageField

SETTLEMENTS = ("commit", "charge", "void")


class AccountUnit(models.TextChoices):
    RECORD = "record", _("one record")
    CONTRIBUTOR = "contributor", _("one contributor")
    # Of one person to one question whose text is public; all answers of a person are as many units.
    ANSWER = "answer", _("one answer")
    # All answers that one person gives, of whom a project asks no more than it declares.
    ANNOTATOR = "annotator", _("one annotator")


class AccountAdjacency(models.TextChoices):
    NULL = "null", _("one replaced by an empty slot")
    ADD_REMOVE = "add_remove", _("one added or removed")
    REPLACE = "replace", _("one replaced by another")


class Filter(models.TextChoices):
    PURE = "pure", _("sums of epsilon and delta")
    ZCDP = "zcdp", _("sums of rho and delta")


class EntryKind(models.TextChoices):
    GRANT = "grant", _("account opened")
    LIMIT_CHANGE = "limit_change", _("limit changed")
    RESERVE = "reserve", _("reserved")
    COMMIT = "commit", _("committed")
    CHARGE = "charge", _("charged without output")
    VOID = "void", _("voided")
    POST_PROCESSING = "post_processing", _("post-processing")


class BudgetAccount(models.Model):
    """One scope's fixed terms and its limits; what stands against them is in the account's last entry.

    The row itself holds no running total: a total rewritten at every entry would leave a trail of dead row versions
    that a backup or a long export keeps alive, and reserving would slow down with each of them.
    """

    scope = models.CharField(max_length=200, unique=True)
    label = MessageField(help_text="Whose it is and which of theirs.")
    unit = models.CharField(max_length=16, choices=AccountUnit.choices)
    adjacency = models.CharField(max_length=16, choices=AccountAdjacency.choices, db_default=AccountAdjacency.NULL)
    filter = models.CharField(max_length=8, choices=Filter.choices)
    created_at = models.DateTimeField(db_default=models.functions.Now())
    # The account over several projects that pays for the same people; an account joins one for good.
    parent = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="quotas")
    records_per_person = models.PositiveIntegerField(
        db_default=1, help_text="The most records of one person, as declared when it joined its parent."
    )
    key_fingerprint = models.CharField(
        max_length=32,
        db_default="",
        blank=True,
        help_text="Of an account over several projects: of the key by which its people are told from each other.",
    )

    epsilon_limit_nano = models.BigIntegerField(db_default=0)
    delta_limit_atto = models.BigIntegerField(db_default=0)
    # A zcdp account keeps part of its delta to turn rho into epsilon; entries may spend the rest.
    delta_sum_limit_atto = models.BigIntegerField(db_default=0)
    rho_limit_nano = models.BigIntegerField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(name="privacy_account_named", condition=~Q(scope="") & ~Q(label="")),
            models.CheckConstraint(
                name="privacy_account_words",
                condition=Q(
                    unit__in=AccountUnit.values, adjacency__in=AccountAdjacency.values, filter__in=Filter.values
                ),
            ),
            models.CheckConstraint(
                name="privacy_account_limits",
                condition=Q(
                    epsilon_limit_nano__gte=0,
                    # 100,000: above it rho = epsilon^2 / 2 no longer fits the column.
                    epsilon_limit_nano__lte=10**14,
                    delta_limit_atto__gte=0,
                    delta_limit_atto__lt=10**18,
                    delta_sum_limit_atto__gte=0,
                    delta_sum_limit_atto__lte=F("delta_limit_atto"),
                ),
            ),
            models.CheckConstraint(
                name="privacy_account_filter",
                condition=Q(epsilon_limit_nano=0, delta_limit_atto=0, rho_limit_nano=None)
                | Q(filter=Filter.PURE, rho_limit_nano=None, delta_sum_limit_atto=F("delta_limit_atto"))
                | Q(filter=Filter.ZCDP, rho_limit_nano__gte=0, delta_sum_limit_atto__lt=F("delta_limit_atto")),
            ),
            models.CheckConstraint(
                name="privacy_account_population",
                condition=Q(key_fingerprint="")
                | Q(
                    key_fingerprint__regex="^[0-9a-f]{32}$",
                    parent=None,
                    scope__startswith="population:",
                    unit__in=(AccountUnit.RECORD, AccountUnit.CONTRIBUTOR),
                ),
            ),
            models.CheckConstraint(
                name="privacy_account_declared",
                condition=Q(parent=None, records_per_person=1)
                | Q(parent__isnull=False, records_per_person__gte=1, records_per_person__lte=10_000),
            ),
        ]

    def __str__(self) -> str:
        return self.plain_label

    @property
    def plain_label(self) -> str:
        """Its label in English, as documents hold it and whoever checks them reads it."""
        return str.__str__(self.label)

    @property
    def slug(self) -> str:
        return self.scope.removeprefix("population:")

    @property
    def population(self) -> "BudgetAccount":
        assert self.parent is not None
        return self.parent


class LedgerEntry(models.Model):
    """One line of an account's history, chained by hash to the line before it."""

    account = models.ForeignKey(BudgetAccount, on_delete=models.PROTECT, related_name="entries", db_index=False)
    sequence = models.BigIntegerField(db_default=0)
    kind = models.CharField(max_length=16, choices=EntryKind.choices)
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="children", db_index=False
    )
    mechanism = models.CharField(max_length=64, db_default="")
    subject = models.CharField(max_length=100, db_default="", blank=True)
    purpose = models.CharField(max_length=500, db_default="", blank=True)
    # Text, not jsonb: jsonb rewrites numbers, and the chain must cover what the accountant wrote to the byte.
    event_json = models.TextField(db_default="{}")

    # Empty where the event has no finite cost of that kind; such an entry fits only a filter that does not sum it.
    epsilon_nano = models.BigIntegerField(null=True, db_default=0)
    delta_atto = models.BigIntegerField(db_default=0)
    rho_nano = models.BigIntegerField(null=True, db_default=0)
    mi_nano = models.BigIntegerField(null=True, db_default=0)

    # The account's totals after this entry; a reservation counts as spent from the moment it stands.
    epsilon_spent_nano = models.BigIntegerField(db_default=0)
    delta_spent_atto = models.BigIntegerField(db_default=0)
    rho_spent_nano = models.BigIntegerField(db_default=0)
    mi_spent_nano = models.BigIntegerField(db_default=0)

    epsilon_reserved_nano = models.BigIntegerField(db_default=0)
    delta_reserved_atto = models.BigIntegerField(db_default=0)
    rho_reserved_nano = models.BigIntegerField(db_default=0)
    mi_reserved_nano = models.BigIntegerField(db_default=0)
    open_reservations = models.BigIntegerField(db_default=0)

    idempotency_key = models.UUIDField(null=True, blank=True, unique=True)
    output_digest = models.CharField(max_length=64, db_default="", blank=True)
    # The user's name as it was, not a foreign key: entries outlive people's accounts and the hash covers the name.
    actor = models.CharField(max_length=150, db_default="", blank=True)
    reason = models.CharField(max_length=500, db_default="", blank=True)
    created_at = models.DateTimeField(db_default=models.functions.Now())
    previous_hash = models.CharField(max_length=64, db_default=NO_HASH)
    hash = models.CharField(max_length=64, db_default=NO_HASH)

    # The population that must be charged as well, as the database says of an entry that was just written.
    population_id: int | None = None

    class Meta:
        verbose_name_plural = "ledger entries"
        constraints = [
            models.UniqueConstraint(name="privacy_entry_sequence", fields=["account", "sequence"]),
            models.UniqueConstraint(
                name="privacy_entry_one_settlement", fields=["parent"], condition=Q(kind__in=SETTLEMENTS)
            ),
            # A second opening would begin to count again.
            models.UniqueConstraint(
                name="privacy_entry_series_opened_once",
                fields=["account", "mechanism"],
                condition=Q(kind="reserve", mechanism__in=OPENED_ONCE, parent=None),
            ),
            models.CheckConstraint(name="privacy_entry_kind", condition=Q(kind__in=EntryKind.values)),
            models.CheckConstraint(
                name="privacy_entry_amounts",
                condition=Q(delta_atto__gte=0, delta_atto__lte=10**18)
                & (Q(epsilon_nano=None) | Q(epsilon_nano__gte=0))
                & (Q(rho_nano=None) | Q(rho_nano__gte=0))
                & (Q(mi_nano=None) | Q(mi_nano__gte=0)),
            ),
            models.CheckConstraint(
                name="privacy_entry_free",
                condition=Q(kind__in=["reserve", *SETTLEMENTS])
                | Q(epsilon_nano=0, delta_atto=0, rho_nano=0, mi_nano=0),
            ),
            models.CheckConstraint(
                name="privacy_entry_parent",
                condition=Q(kind__in=["grant", "limit_change"], parent=None)
                | Q(kind="reserve")
                | Q(kind__in=[*SETTLEMENTS, "post_processing"], parent__isnull=False),
            ),
            models.CheckConstraint(
                name="privacy_entry_key",
                condition=Q(kind__in=["reserve", "post_processing"], idempotency_key__isnull=False)
                | Q(kind__in=["grant", "limit_change", *SETTLEMENTS], idempotency_key=None),
            ),
            models.CheckConstraint(
                name="privacy_entry_digest",
                condition=Q(kind__in=["commit", "post_processing"], output_digest__regex=r"^[0-9a-f]{64}$")
                | Q(kind__in=["grant", "limit_change", "reserve", "charge", "void"], output_digest=""),
            ),
            models.CheckConstraint(
                name="privacy_entry_purpose",
                condition=~Q(kind__in=["reserve", "post_processing"]) | (~Q(purpose="") & ~Q(mechanism="")),
            ),
            models.CheckConstraint(
                name="privacy_entry_reason",
                condition=~Q(kind__in=["grant", "limit_change", "void", "charge"]) | ~Q(reason=""),
            ),
        ]
        indexes = [
            models.Index(
                name="privacy_entry_descendants",
                fields=["parent"],
                condition=Q(kind__in=["reserve", "post_processing"], parent__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"#{self.sequence} {self.get_kind_display()}"

    @cached_property
    def event(self) -> dict[str, Any]:
        """The event as a dictionary; `event_json` holds the exact text."""
        parsed: dict[str, Any] = json.loads(self.event_json)
        return parsed


class LedgerCounter(models.Model):
    """The counter outside the database that this one belongs to: the newest row; earlier ones are how it came to that.

    Only the owner of the tables writes here, so that no process that spends can take another counter for its own.
    """

    identity = models.UUIDField(unique=True, editable=False)
    begun_at = models.DateTimeField(db_default=models.functions.Now())
    reason = models.TextField(blank=True, help_text="Why what was spent before is as the database remembers it.")

    def __str__(self) -> str:
        return f"counter {self.identity}"
