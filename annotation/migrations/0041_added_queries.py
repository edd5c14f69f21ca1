"""The rules of a new question look its record up by its id."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0040_newly_done_questions"),
    ]

    operations = [
        migrations.RunSQL(
            (SQL / "0041_added_queries.sql").read_text(),
            reverse_sql=(SQL / "0041_added_queries.reverse.sql").read_text(),
        ),
    ]
