"""Parts of a pool that several workers score or make features of; scores lie outside the write-ahead log."""

import uuid

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0038_import_parts"),
        ("learner", "0021_tombstones"),
    ]

    operations = [
        migrations.CreateModel(
            name="FeaturePart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "build",
                    models.UUIDField(
                        help_text="Whoever puts the parts together; two who do so have parts of their own."
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("first_row", models.BigIntegerField()),
                ("stop_row", models.BigIntegerField()),
                ("name", models.UUIDField(default=uuid.uuid4, help_text="Of its file.")),
                ("done", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="feature_parts",
                        to="annotation.dataset",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("build", "number"), name="learner_feature_part_once")],
            },
        ),
        migrations.CreateModel(
            name="ScorePart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("datasets", models.JSONField(help_text="Uploads whose features are stacked, in this order.")),
                ("rows", models.BinaryField(help_text="Rows of the stacked features, eight bytes each.")),
                ("scores", models.BinaryField(help_text="Numbers of eight bytes, as many for each row.", null=True)),
                (
                    "round",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="score_parts",
                        to="learner.round",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("round", "number"), name="learner_score_part_once")],
            },
        ),
        migrations.RunSQL(
            "ALTER TABLE learner_scorepart SET UNLOGGED", reverse_sql="ALTER TABLE learner_scorepart SET LOGGED"
        ),
    ]
