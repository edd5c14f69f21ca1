"""Secret coins are drawn once, and the rate they were drawn at stays, whoever writes."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("learner", "0003_secret_blocks"), ("annotation", "0005_secret_samples")]

    operations = [
        migrations.RunSQL(
            (SQL / "0004_coins_stay.sql").read_text(),
            reverse_sql=(SQL / "0004_coins_stay.reverse.sql").read_text(),
        ),
    ]
