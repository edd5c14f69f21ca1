"""Released models can be retired and nothing else, whoever writes."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("learner", "0001_rounds_and_releases")]

    operations = [
        migrations.RunSQL(
            (SQL / "0002_releases_stay.sql").read_text(),
            reverse_sql=(SQL / "0002_releases_stay.reverse.sql").read_text(),
        ),
    ]
