"""What is left of an account, for a process that may not read the ledger."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("privacy", "0002_ledger_rules")]

    operations = [
        migrations.RunSQL(
            (SQL / "0003_account_totals.sql").read_text(),
            reverse_sql=(SQL / "0003_account_totals.reverse.sql").read_text(),
        ),
    ]
