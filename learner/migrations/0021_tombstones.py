"""What goes with a deleted project, and what never comes into one."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("learner", "0020_public_measures"), ("annotation", "0030_tombstones")]

    operations = [
        migrations.RunSQL(
            (SQL / "0021_tombstones.sql").read_text(),
            reverse_sql=(SQL / "0021_tombstones.reverse.sql").read_text(),
        ),
    ]
