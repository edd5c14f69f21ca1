"""Who answers and how records come may change until something rests on it."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("annotation", "0032_second_manager")]

    operations = [
        migrations.RunSQL(
            (SQL / "0033_kinds.sql").read_text(), reverse_sql=(SQL / "0033_kinds.reverse.sql").read_text()
        ),
    ]
