"""Public examples that start a model may carry their labels, as a public test set may."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("annotation", "0007_selection_choices")]

    operations = [
        migrations.RunSQL(
            (SQL / "0008_public_labels.sql").read_text(),
            reverse_sql=(SQL / "0008_public_labels.reverse.sql").read_text(),
        ),
    ]
