"""A group that labels for a crowd stands in the way of showing it records."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("annotation", "0035_groups")]

    operations = [
        migrations.RunSQL(
            (SQL / "0036_kinds_and_groups.sql").read_text(),
            reverse_sql=(SQL / "0036_kinds_and_groups.reverse.sql").read_text(),
        ),
    ]
