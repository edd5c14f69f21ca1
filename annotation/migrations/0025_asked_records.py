"""What the process behind the label pages may learn of a record: what was asked, and whether somebody met its person."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("annotation", "0024_emptying")]

    operations = [
        migrations.RunSQL(
            (SQL / "0025_asked_records.sql").read_text(),
            reverse_sql=(SQL / "0025_asked_records.reverse.sql").read_text(),
        ),
    ]
