"""A release's lineage and its measures stay as they were written, and no table of it is emptied."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("learner", "0017_cancelled_work")]

    operations = [
        migrations.RunSQL(
            (SQL / "0018_release_whole.sql").read_text(),
            reverse_sql=(SQL / "0018_release_whole.reverse.sql").read_text(),
        ),
    ]
