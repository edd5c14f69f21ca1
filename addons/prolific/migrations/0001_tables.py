"""Studies on Prolific with what is paid in them: their tables and the rules that only triggers can keep."""

import uuid
from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import privacy.message_fields
from privacy.first_migration import FirstMigration

SQL = Path(__file__).parent / "sql"


class Migration(FirstMigration):
    dependencies = [
        ("annotation", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CrowdStudy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "salt",
                    models.BinaryField(
                        help_text="The link's secret is made from it, until it is told.", max_length=32, null=True
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                ("description", models.TextField(max_length=3000)),
                ("places", models.PositiveIntegerField()),
                (
                    "reward_cents",
                    models.PositiveIntegerField(help_text="Pay of a place, in hundredths of the currency."),
                ),
                ("minutes", models.PositiveIntegerField(help_text="How long one takes, as participants are told.")),
                ("fee_percent", models.DecimalField(decimal_places=2, max_digits=5)),
                ("external_id", models.CharField(blank=True, max_length=64)),
                (
                    "state",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "not opened yet"),
                            ("UNPUBLISHED", "draft"),
                            ("PUBLISHING", "being published"),
                            ("SCHEDULED", "scheduled"),
                            ("ACTIVE", "open"),
                            ("PAUSED", "paused"),
                            ("AWAITING REVIEW", "waiting for your decisions"),
                            ("COMPLETED", "done"),
                            ("DISCARDED", "discarded"),
                        ],
                        default="",
                        max_length=20,
                    ),
                ),
                (
                    "wanted",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("PUBLISH", "Publish"),
                            ("PAUSE", "Pause"),
                            ("START", "Resume"),
                            ("STOP", "Stop for good"),
                            ("DISCARD", "Discard"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "tried_at",
                    models.DateTimeField(blank=True, help_text="When its opening was first asked for.", null=True),
                ),
                ("places_taken", models.PositiveIntegerField(default=0)),
                ("approved", models.PositiveIntegerField(default=0)),
                (
                    "forgotten_bonus_cents",
                    models.PositiveIntegerField(default=0, help_text="Bonuses whose rows were forgotten."),
                ),
                ("fault", privacy.message_fields.MessageField(default=str)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "next_at",
                    models.DateTimeField(
                        blank=True, db_index=True, help_text="When the platform is asked next.", null=True
                    ),
                ),
                ("leased_until", models.DateTimeField(blank=True, help_text="While a worker is at it.", null=True)),
                ("followed_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "link",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="opened_study",
                        to="annotation.crowdlink",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="crowd_studies",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "crowd studies",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("fee_percent__gte", 0),
                            ("minutes__gte", 1),
                            ("places__gte", 1),
                            ("reward_cents__gte", 1),
                            ("fee_percent__lte", 100),
                        ),
                        name="prolific_crowdstudy_amounts",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("external_id", ""), _negated=True),
                        fields=("external_id",),
                        name="prolific_crowdstudy_opened_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("external_id", ""), ("salt", None), _connector="OR"),
                        name="prolific_crowdstudy_keeps_no_secret",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BonusSheet",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("wanted", "waiting"),
                            ("paying", "being paid"),
                            ("paid", "paid"),
                            ("unclear", "unclear"),
                            ("refused", "refused"),
                        ],
                        default="wanted",
                        max_length=10,
                    ),
                ),
                ("external_id", models.CharField(blank=True, max_length=64)),
                ("paying_at", models.DateTimeField(blank=True, null=True)),
                ("fault", privacy.message_fields.MessageField(default=str)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bonus_sheets",
                        to="prolific.crowdstudy",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ("wanted", "paying", "unclear"))),
                        fields=("study",),
                        name="prolific_bonussheet_one_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ("wanted", "refused")),
                            models.Q(models.Q(("external_id", ""), _negated=True), ("paying_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="prolific_bonussheet_set_up_first",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CrowdSubmission",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("external_id", models.CharField(max_length=64)),
                ("pid_digest", models.BinaryField(max_length=16)),
                ("state", models.CharField(max_length=20)),
                (
                    "has_code",
                    models.BooleanField(default=False, help_text="Whether the right completion code was handed in."),
                ),
                ("return_asked", models.BooleanField(default=False)),
                (
                    "bonus_cents",
                    models.PositiveIntegerField(default=0, help_text="What the platform says was paid on top."),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="submissions",
                        to="prolific.crowdstudy",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("study", "external_id"), name="prolific_crowdsubmission_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="BonusLine",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("amount_cents", models.PositiveIntegerField()),
                ("before_cents", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "sheet",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="lines", to="prolific.bonussheet"
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bonuses",
                        to="prolific.crowdsubmission",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("sheet", "submission"), name="prolific_bonusline_once"),
                    models.CheckConstraint(
                        condition=models.Q(("amount_cents__gte", 1)), name="prolific_bonusline_amount"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PlatformAccount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sealed_token", models.TextField()),
                (
                    "fee_percent",
                    models.DecimalField(decimal_places=2, help_text="What the platform adds to a pay.", max_digits=5),
                ),
                (
                    "currency",
                    models.CharField(
                        blank=True, help_text="As the platform says it; empty until it did.", max_length=3
                    ),
                ),
                ("fault", privacy.message_fields.MessageField(default=str)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="platform_account",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("fee_percent__gte", 0), ("fee_percent__lte", 100)),
                        name="prolific_platformaccount_fee",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("sealed_token", ""), _negated=True), name="prolific_platformaccount_token"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CrowdVerdict",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[("APPROVE", "Approve"), ("REJECT", "reject"), ("RETURN", "ask to return it")],
                        max_length=10,
                    ),
                ),
                ("category", models.CharField(blank=True, max_length=24)),
                (
                    "reason",
                    models.TextField(
                        blank=True, help_text="To the participant; forgotten once it is sent.", max_length=1000
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("wanted", "waiting"), ("done", "done"), ("refused", "refused")],
                        default="wanted",
                        max_length=10,
                    ),
                ),
                ("fault", privacy.message_fields.MessageField(default=str)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "decided_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="verdicts",
                        to="prolific.crowdsubmission",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("kind__in", ("APPROVE", "REJECT")), models.Q(("state", "refused"), _negated=True)
                        ),
                        fields=("submission",),
                        name="prolific_verdict_final_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "RETURN"), models.Q(("state", "refused"), _negated=True)),
                        fields=("submission",),
                        name="prolific_verdict_return_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("category", ""), ("kind", "APPROVE"), ("reason", "")),
                            models.Q(
                                models.Q(("kind", "APPROVE"), _negated=True),
                                models.Q(
                                    models.Q(("state", "wanted"), models.Q(("reason", ""), _negated=True)),
                                    models.Q(models.Q(("state", "wanted"), _negated=True), ("reason", "")),
                                    _connector="OR",
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="prolific_verdict_says_why",
                    ),
                ],
            },
        ),
        migrations.RunSQL((SQL / "studies.sql").read_text(), reverse_sql=(SQL / "studies.reverse.sql").read_text()),
    ]
