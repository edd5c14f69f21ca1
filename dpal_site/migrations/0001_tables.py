"""Heartbeats, counts of tries and sessions, and what the process of the label pages may do with a session."""

from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from privacy.first_migration import FirstMigration

SQL = Path(__file__).parent / "sql"
RULES = (
    "counts",
    "sessions",
)


class Migration(FirstMigration):
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="SentTask",
            fields=[
                ("name", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("sent_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                ("name", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("seen_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="CachedCount",
            fields=[
                ("cache_key", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("value", models.TextField()),
                ("expires", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                (
                    "session_key",
                    models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name="session key"),
                ),
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                ("seen_at", models.DateTimeField(null=True)),
                (
                    "person",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"verbose_name": "session", "verbose_name_plural": "sessions", "abstract": False},
        ),
        migrations.RunSQL(
            "\n".join((SQL / f"{name}.sql").read_text() for name in RULES),
            reverse_sql=(SQL / "rules.reverse.sql").read_text(),
        ),
    ]
