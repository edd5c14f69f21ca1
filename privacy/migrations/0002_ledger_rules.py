"""The rules of the ledger that only triggers can keep."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("privacy", "0001_ledger")]

    operations = [
        migrations.RunSQL(
            (SQL / "0002_ledger_rules.sql").read_text(),
            reverse_sql=(SQL / "0002_ledger_rules.reverse.sql").read_text(),
        ),
    ]
