"""A record's dataset is checked once a statement instead of once a row."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0038_import_parts"),
    ]

    operations = [
        migrations.AlterField(
            model_name="record",
            name="dataset",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="records",
                to="annotation.dataset",
            ),
        ),
        migrations.RunSQL(
            (SQL / "0039_record_dataset.sql").read_text(),
            reverse_sql=(SQL / "0039_record_dataset.reverse.sql").read_text(),
        ),
    ]
