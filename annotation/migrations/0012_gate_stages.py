"""Parts of an upload in stages, and what they hand to each other, outside the write-ahead log."""

import django.db.models.deletion
from django.db import migrations, models

STAGES = [
    ("rows", "digest a range of rows"),
    ("people", "cap a share of the contributors"),
    ("texts", "count a share of the texts"),
    ("passed", "put together what reaches the minimum"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0011_annotators_page"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="gatepart", name="annotation_gate_part_once"),
        migrations.RemoveField(model_name="gatepart", name="collected"),
        migrations.AddField(
            model_name="gatepart",
            name="stage",
            field=models.CharField(choices=STAGES, default="rows", max_length=10),
            preserve_default=False,
        ),
        migrations.AddField(model_name="gatepart", name="done", field=models.BooleanField(default=False)),
        migrations.AlterField(model_name="gatepart", name="first_row", field=models.BigIntegerField(default=0)),
        migrations.AlterField(model_name="gatepart", name="row_count", field=models.BigIntegerField(default=0)),
        migrations.AddConstraint(
            model_name="gatepart",
            constraint=models.UniqueConstraint(fields=("run", "stage", "number"), name="annotation_gate_part_once"),
        ),
        migrations.CreateModel(
            name="GatePiece",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "stage",
                    models.CharField(choices=STAGES, help_text="The stage that reads it.", max_length=10),
                ),
                ("number", models.PositiveIntegerField(help_text="The part that reads it.")),
                ("source", models.PositiveIntegerField(help_text="The part that made it.")),
                ("content", models.BinaryField()),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pieces",
                        to="annotation.gaterun",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "stage", "number", "source"), name="annotation_gate_piece_once"
                    )
                ],
            },
        ),
        # Outside the write-ahead log: no archive, replica or base backup holds what did not pass the gate.
        migrations.RunSQL(
            "ALTER TABLE annotation_gatepiece SET UNLOGGED", reverse_sql="ALTER TABLE annotation_gatepiece SET LOGGED"
        ),
    ]
