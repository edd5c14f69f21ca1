"""The rules about records, questions and labels that only triggers can keep."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("annotation", "0001_tables")]

    operations = [
        migrations.RunSQL(
            (SQL / "0002_oracle_rules.sql").read_text(),
            reverse_sql=(SQL / "0002_oracle_rules.reverse.sql").read_text(),
        ),
    ]
