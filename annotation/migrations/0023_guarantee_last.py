"""The rule about what a guarantee rests on speaks after the narrower ones."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("annotation", "0022_charged_start")]

    operations = [
        migrations.RunSQL(
            (SQL / "0023_guarantee_last.sql").read_text(),
            reverse_sql=(SQL / "0023_guarantee_last.reverse.sql").read_text(),
        ),
    ]
