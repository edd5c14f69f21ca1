"""Looks that were taken stay counted, and the rates they were paid at stay as they were."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("learner", "0005_screen_looks"), ("annotation", "0007_selection_choices")]

    operations = [
        migrations.RunSQL(
            (SQL / "0006_screens_stay.sql").read_text(),
            reverse_sql=(SQL / "0006_screens_stay.reverse.sql").read_text(),
        ),
    ]
