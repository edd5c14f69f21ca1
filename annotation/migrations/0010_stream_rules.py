"""What a stream has paid for stays as it is, and so does a guess that was shown."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("annotation", "0009_streams")]

    operations = [
        migrations.RunSQL(
            (SQL / "0010_stream_rules.sql").read_text(),
            reverse_sql=(SQL / "0010_stream_rules.reverse.sql").read_text(),
        ),
    ]
