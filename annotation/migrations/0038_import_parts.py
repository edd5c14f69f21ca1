"""Parts of a large file that several workers read."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0037_pixel_digest"),
    ]

    operations = [
        migrations.CreateModel(
            name="ImportPart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("first", models.BigIntegerField(help_text="Byte, or row group of a Parquet file.")),
                ("stop", models.BigIntegerField()),
                (
                    "row_count",
                    models.BigIntegerField(help_text="Rows that can be used; null until they are counted.", null=True),
                ),
                ("line_count", models.BigIntegerField(null=True)),
                ("unpacked_bytes", models.BigIntegerField(default=0)),
                ("bad_row_count", models.BigIntegerField(default=0)),
                (
                    "bad_row_report",
                    models.JSONField(default=list, help_text="Lines are counted from the beginning of the part."),
                ),
                (
                    "held_until",
                    models.DateTimeField(
                        help_text="Until then its rows wait with the worker that read them.", null=True
                    ),
                ),
                ("stored", models.BooleanField(default=False)),
                (
                    "odd",
                    models.BooleanField(
                        default=False, help_text="It cannot be read by itself; the file is read in one piece."
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="import_parts",
                        to="annotation.dataset",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("dataset", "number"), name="annotation_import_part_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("line_count", None), ("row_count", None), ("stored", False)),
                            models.Q(("line_count__isnull", False), ("row_count__isnull", False)),
                            _connector="OR",
                        ),
                        name="annotation_import_part_counted",
                    ),
                ],
            },
        ),
    ]
