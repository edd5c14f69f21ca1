"""Which counter outside the database the ledger belongs to."""

from pathlib import Path

import django.db.models.functions.datetime
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("privacy", "0001_tables")]

    operations = [
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
            (SQL / "ledger_counter.sql").read_text(),
            reverse_sql=(SQL / "ledger_counter.reverse.sql").read_text(),
        ),
    ]
