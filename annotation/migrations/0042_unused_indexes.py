"""Two indexes nothing asked: others begin with the same column, or hold the same few rows."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0041_added_queries"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="assignment",
            name="annotation_assignment_lease",
        ),
        # Altering the field would drop the unique index over the same column as well.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="label",
                    name="assignment",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="labels",
                        to="annotation.assignment",
                    ),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX annotation_label_assignment_id_7869fafb",
                    "CREATE INDEX annotation_label_assignment_id_7869fafb ON annotation_label (assignment_id)",
                ),
            ],
        ),
    ]
