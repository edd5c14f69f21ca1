"""The ledger: its tables and the rules that hold whoever writes."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import privacy.message_fields
from privacy.first_migration import FirstMigration

SQL = Path(__file__).parent / "sql"
# In this order: a rule may call what an earlier file defines.
RULES = ("events", "rules")


class Migration(FirstMigration):
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="BudgetAccount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.CharField(max_length=200, unique=True)),
                (
                    "label",
                    privacy.message_fields.MessageField(default=str, help_text="Whose it is and which of theirs."),
                ),
                (
                    "unit",
                    models.CharField(
                        choices=[
                            ("record", "one record"),
                            ("contributor", "one contributor"),
                            ("answer", "one answer"),
                            ("annotator", "one annotator"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "adjacency",
                    models.CharField(
                        choices=[
                            ("null", "one replaced by an empty slot"),
                            ("add_remove", "one added or removed"),
                            ("replace", "one replaced by another"),
                        ],
                        db_default="null",
                        max_length=16,
                    ),
                ),
                (
                    "filter",
                    models.CharField(
                        choices=[("pure", "sums of epsilon and delta"), ("zcdp", "sums of rho and delta")], max_length=8
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="quotas",
                        to="privacy.budgetaccount",
                    ),
                ),
                (
                    "records_per_person",
                    models.PositiveIntegerField(
                        db_default=1, help_text="The most records of one person, as declared when it joined its parent."
                    ),
                ),
                (
                    "key_fingerprint",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text=(
                            "Of an account over several projects: of the key by which its people are told from each "
                            "other."
                        ),
                        max_length=32,
                    ),
                ),
                ("epsilon_limit_nano", models.BigIntegerField(db_default=0)),
                ("delta_limit_atto", models.BigIntegerField(db_default=0)),
                ("delta_sum_limit_atto", models.BigIntegerField(db_default=0)),
                ("rho_limit_nano", models.BigIntegerField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("scope", ""), _negated=True), models.Q(("label", ""), _negated=True)
                        ),
                        name="privacy_account_named",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("adjacency__in", ["null", "add_remove", "replace"]),
                            ("filter__in", ["pure", "zcdp"]),
                            ("unit__in", ["record", "contributor", "answer", "annotator"]),
                        ),
                        name="privacy_account_words",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("delta_limit_atto__gte", 0),
                            ("delta_limit_atto__lt", 1000000000000000000),
                            ("delta_sum_limit_atto__gte", 0),
                            ("delta_sum_limit_atto__lte", models.F("delta_limit_atto")),
                            ("epsilon_limit_nano__gte", 0),
                            ("epsilon_limit_nano__lte", 100000000000000),
                        ),
                        name="privacy_account_limits",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("delta_limit_atto", 0), ("epsilon_limit_nano", 0), ("rho_limit_nano", None)),
                            models.Q(
                                ("delta_sum_limit_atto", models.F("delta_limit_atto")),
                                ("filter", "pure"),
                                ("rho_limit_nano", None),
                            ),
                            models.Q(
                                ("delta_sum_limit_atto__lt", models.F("delta_limit_atto")),
                                ("filter", "zcdp"),
                                ("rho_limit_nano__gte", 0),
                            ),
                            _connector="OR",
                        ),
                        name="privacy_account_filter",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("key_fingerprint", ""),
                            models.Q(
                                ("key_fingerprint__regex", "^[0-9a-f]{32}$"),
                                ("parent", None),
                                ("scope__startswith", "population:"),
                                ("unit__in", ("record", "contributor")),
                            ),
                            _connector="OR",
                        ),
                        name="privacy_account_population",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("parent", None), ("records_per_person", 1)),
                            models.Q(
                                ("parent__isnull", False),
                                ("records_per_person__gte", 1),
                                ("records_per_person__lte", 10000),
                            ),
                            _connector="OR",
                        ),
                        name="privacy_account_declared",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LedgerEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sequence", models.BigIntegerField(db_default=0)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("grant", "account opened"),
                            ("limit_change", "limit changed"),
                            ("reserve", "reserved"),
                            ("commit", "committed"),
                            ("charge", "charged without output"),
                            ("void", "voided"),
                            ("post_processing", "post-processing"),
                        ],
                        max_length=16,
                    ),
                ),
                ("mechanism", models.CharField(db_default="", max_length=64)),
                ("subject", models.CharField(blank=True, db_default="", max_length=100)),
                ("purpose", models.CharField(blank=True, db_default="", max_length=500)),
                ("event_json", models.TextField(db_default="{}")),
                ("epsilon_nano", models.BigIntegerField(db_default=0, null=True)),
                ("delta_atto", models.BigIntegerField(db_default=0)),
                ("rho_nano", models.BigIntegerField(db_default=0, null=True)),
                ("mi_nano", models.BigIntegerField(db_default=0, null=True)),
                ("epsilon_spent_nano", models.BigIntegerField(db_default=0)),
                ("delta_spent_atto", models.BigIntegerField(db_default=0)),
                ("rho_spent_nano", models.BigIntegerField(db_default=0)),
                ("mi_spent_nano", models.BigIntegerField(db_default=0)),
                ("epsilon_reserved_nano", models.BigIntegerField(db_default=0)),
                ("delta_reserved_atto", models.BigIntegerField(db_default=0)),
                ("rho_reserved_nano", models.BigIntegerField(db_default=0)),
                ("mi_reserved_nano", models.BigIntegerField(db_default=0)),
                ("open_reservations", models.BigIntegerField(db_default=0)),
                ("idempotency_key", models.UUIDField(blank=True, null=True, unique=True)),
                ("output_digest", models.CharField(blank=True, db_default="", max_length=64)),
                ("actor", models.CharField(blank=True, db_default="", max_length=150)),
                ("reason", models.CharField(blank=True, db_default="", max_length=500)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "previous_hash",
                    models.CharField(
                        db_default="0000000000000000000000000000000000000000000000000000000000000000", max_length=64
                    ),
                ),
                (
                    "hash",
                    models.CharField(
                        db_default="0000000000000000000000000000000000000000000000000000000000000000", max_length=64
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="privacy.budgetaccount",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="privacy.ledgerentry",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "ledger entries",
                "indexes": [
                    models.Index(
                        condition=models.Q(("kind__in", ["reserve", "post_processing"]), ("parent__isnull", False)),
                        fields=["parent"],
                        name="privacy_entry_descendants",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("account", "sequence"), name="privacy_entry_sequence"),
                    models.UniqueConstraint(
                        condition=models.Q(("kind__in", ("commit", "charge", "void"))),
                        fields=("parent",),
                        name="privacy_entry_one_settlement",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("kind", "reserve"),
                            ("mechanism__in", ("secret_block", "gate_window", "composed_gate_window")),
                            ("parent", None),
                        ),
                        fields=("account", "mechanism"),
                        name="privacy_entry_series_opened_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                ["grant", "limit_change", "reserve", "commit", "charge", "void", "post_processing"],
                            )
                        ),
                        name="privacy_entry_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("delta_atto__gte", 0),
                            ("delta_atto__lte", 1000000000000000000),
                            models.Q(("epsilon_nano", None), ("epsilon_nano__gte", 0), _connector="OR"),
                            models.Q(("rho_nano", None), ("rho_nano__gte", 0), _connector="OR"),
                            models.Q(("mi_nano", None), ("mi_nano__gte", 0), _connector="OR"),
                        ),
                        name="privacy_entry_amounts",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind__in", ["reserve", "commit", "charge", "void"]),
                            models.Q(("delta_atto", 0), ("epsilon_nano", 0), ("mi_nano", 0), ("rho_nano", 0)),
                            _connector="OR",
                        ),
                        name="privacy_entry_free",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind__in", ["grant", "limit_change"]), ("parent", None)),
                            ("kind", "reserve"),
                            models.Q(
                                ("kind__in", ["commit", "charge", "void", "post_processing"]), ("parent__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="privacy_entry_parent",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("idempotency_key__isnull", False), ("kind__in", ["reserve", "post_processing"])),
                            models.Q(
                                ("idempotency_key", None),
                                ("kind__in", ["grant", "limit_change", "commit", "charge", "void"]),
                            ),
                            _connector="OR",
                        ),
                        name="privacy_entry_key",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("kind__in", ["commit", "post_processing"]), ("output_digest__regex", "^[0-9a-f]{64}$")
                            ),
                            models.Q(
                                ("kind__in", ["grant", "limit_change", "reserve", "charge", "void"]),
                                ("output_digest", ""),
                            ),
                            _connector="OR",
                        ),
                        name="privacy_entry_digest",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind__in", ["reserve", "post_processing"]), _negated=True),
                            models.Q(
                                models.Q(("purpose", ""), _negated=True), models.Q(("mechanism", ""), _negated=True)
                            ),
                            _connector="OR",
                        ),
                        name="privacy_entry_purpose",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind__in", ["grant", "limit_change", "void", "charge"]), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="privacy_entry_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LedgerCounter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("identity", models.UUIDField(editable=False, unique=True)),
                ("begun_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "reason",
                    models.TextField(
                        blank=True, help_text="Why what was spent before is as the database remembers it."
                    ),
                ),
            ],
        ),
        migrations.RunSQL(
            "\n".join((SQL / f"{name}.sql").read_text() for name in RULES),
            reverse_sql=(SQL / "rules.reverse.sql").read_text(),
        ),
    ]
