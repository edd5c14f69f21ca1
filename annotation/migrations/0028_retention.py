"""How long a project keeps what it holds."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0027_counts_unlogged"),
    ]

    operations = [
        migrations.CreateModel(
            name="Retention",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("records_days", models.PositiveIntegerField(blank=True, help_text="From the upload on.", null=True)),
                (
                    "answers_days",
                    models.PositiveIntegerField(blank=True, help_text="From the last answer on.", null=True),
                ),
                (
                    "comments_days",
                    models.PositiveIntegerField(
                        blank=True, default=365, help_text="From when they are settled.", null=True
                    ),
                ),
                (
                    "uploads_days",
                    models.PositiveIntegerField(blank=True, default=90, help_text="From the upload on.", null=True),
                ),
                (
                    "actions_days",
                    models.PositiveIntegerField(
                        blank=True, default=1095, help_text="From the action on, at least 90.", null=True
                    ),
                ),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="retention", to="annotation.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("records_days", None), ("records_days__gte", 1), _connector="OR"),
                            models.Q(("answers_days", None), ("answers_days__gte", 1), _connector="OR"),
                            models.Q(("comments_days", None), ("comments_days__gte", 1), _connector="OR"),
                            models.Q(("uploads_days", None), ("uploads_days__gte", 1), _connector="OR"),
                        ),
                        name="annotation_retention_days",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("actions_days", None), ("actions_days__gte", 90), _connector="OR"),
                        name="annotation_retention_actions",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SlotMark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("slots", models.BigIntegerField()),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="slot_marks",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("project", "day"), name="annotation_slotmark_once")],
            },
        ),
        migrations.RunSQL(
            (SQL / "0028_retention.sql").read_text(),
            reverse_sql=(SQL / "0028_retention.reverse.sql").read_text(),
        ),
    ]
