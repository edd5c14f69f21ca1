"""A higher limit may need a second manager, who is never the one that asked."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0031_skipped_index"),
        ("privacy", "0003_account_totals"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="project",
            name="second_manager",
            field=models.BooleanField(
                default=False, help_text="A higher limit of an account needs the approval of a second manager."
            ),
        ),
        migrations.CreateModel(
            name="LimitRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[("limit", "a higher limit"), ("alone", "one manager deciding alone")], max_length=5
                    ),
                ),
                ("epsilon_limit_nano", models.BigIntegerField(blank=True, null=True)),
                ("delta_limit_atto", models.BigIntegerField(blank=True, null=True)),
                ("reason", models.CharField(max_length=300)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("approved", "approved"),
                            ("refused", "refused"),
                            ("withdrawn", "withdrawn"),
                            ("expired", "expired"),
                        ],
                        default="open",
                        max_length=9,
                    ),
                ),
                ("requested_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "used_at",
                    models.DateTimeField(blank=True, help_text="When the change it allows was made.", null=True),
                ),
                (
                    "account",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.budgetaccount",
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="limit_requests",
                        to="annotation.project",
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("account__isnull", False),
                                ("delta_limit_atto__isnull", False),
                                ("epsilon_limit_nano__isnull", False),
                                ("kind", "limit"),
                            ),
                            models.Q(
                                ("account", None),
                                ("delta_limit_atto", None),
                                ("epsilon_limit_nano", None),
                                ("kind", "alone"),
                            ),
                            _connector="OR",
                        ),
                        name="annotation_limitrequest_shape",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True), name="annotation_limitrequest_reason"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at", None), ("decided_by", None), ("state", "open")),
                            models.Q(("decided_at__isnull", False), ("decided_by", None), ("state", "expired")),
                            models.Q(
                                ("decided_at__isnull", False),
                                ("decided_by", models.F("requested_by")),
                                ("state", "withdrawn"),
                            ),
                            models.Q(
                                models.Q(("decided_by", models.F("requested_by")), _negated=True),
                                ("decided_at__isnull", False),
                                ("decided_by__isnull", False),
                                ("state__in", ("approved", "refused")),
                            ),
                            _connector="OR",
                        ),
                        name="annotation_limitrequest_second_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "approved"), _negated=True),
                            ("decided_at__lte", models.F("expires_at")),
                            _connector="OR",
                        ),
                        name="annotation_limitrequest_in_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("used_at", None), ("state", "approved"), _connector="OR"),
                        name="annotation_limitrequest_used",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "limit"), ("state", "open")),
                        fields=("account",),
                        name="annotation_limitrequest_one_open",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "alone"), ("state", "open")),
                        fields=("project",),
                        name="annotation_limitrequest_one_alone",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            (SQL / "0032_second_manager.sql").read_text(),
            reverse_sql=(SQL / "0032_second_manager.reverse.sql").read_text(),
        ),
    ]
