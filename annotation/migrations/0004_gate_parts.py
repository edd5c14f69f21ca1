"""Ranges of an upload that several workers pass through the gate, outside the write-ahead log."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0003_gate_kinds"),
    ]

    operations = [
        migrations.CreateModel(
            name="GatePart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("first_row", models.BigIntegerField()),
                ("row_count", models.BigIntegerField()),
                (
                    "salt",
                    models.BinaryField(
                        help_text="Gives the attempt's coins, together with the site's secret.", max_length=32
                    ),
                ),
                (
                    "collected",
                    models.BinaryField(blank=True, help_text="The digest; null until it is made.", null=True),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="annotation.gaterun",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("run", "number"), name="annotation_gate_part_once")],
            },
        ),
        # Outside the write-ahead log: no archive, replica or base backup holds what did not pass the gate.
        migrations.RunSQL(
            "ALTER TABLE annotation_gatepart SET UNLOGGED", reverse_sql="ALTER TABLE annotation_gatepart SET LOGGED"
        ),
    ]
