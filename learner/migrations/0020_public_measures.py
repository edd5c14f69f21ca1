"""No release is measured on private records."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("learner", "0019_plan_simulations")]

    operations = [
        migrations.RunSQL(
            (SQL / "0020_public_measures.sql").read_text(),
            reverse_sql=(SQL / "0020_public_measures.reverse.sql").read_text(),
        ),
    ]
