"""A project ends as a tombstone: archived it can be read, deleted its row stays."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0029_cancelled_work"),
    ]

    operations = [
        migrations.AlterField(
            model_name="project",
            name="state",
            field=models.CharField(
                choices=[("active", "active"), ("paused", "paused"), ("archived", "archived"), ("deleted", "deleted")],
                default="active",
                max_length=10,
            ),
        ),
        migrations.CreateModel(
            name="Deletion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "keep_releases",
                    models.BooleanField(help_text="Whether released models stay, or only that they were released."),
                ),
                ("actor", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="deletion", to="annotation.job"
                    ),
                ),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="deletion", to="annotation.project"
                    ),
                ),
            ],
        ),
        migrations.RunSQL(
            (SQL / "0030_tombstones.sql").read_text(),
            reverse_sql=(SQL / "0030_tombstones.reverse.sql").read_text(),
        ),
    ]
