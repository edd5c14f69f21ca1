"""Who did what, what changed, and what no longer changes once it was paid for."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0020_shrinking_screen"),
    ]

    operations = [
        migrations.CreateModel(
            name="Action",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("actor", models.CharField(max_length=150)),
                ("route", models.CharField(help_text="Name of the page or API route.", max_length=80)),
                ("target", models.JSONField(default=dict, help_text="Numbers of what it was done to.")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="actions",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "id"], name="annotation_action_project")],
            },
        ),
        migrations.CreateModel(
            name="ProjectChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "actor",
                    models.CharField(
                        blank=True, help_text="Name as it was; empty where no page did it.", max_length=150
                    ),
                ),
                ("fields", models.JSONField(help_text="By field: the value before and the value after.")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="changes",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "id"], name="annotation_change_project")],
            },
        ),
        migrations.RunSQL(
            (SQL / "0021_history.sql").read_text(), reverse_sql=(SQL / "0021_history.reverse.sql").read_text()
        ),
    ]
