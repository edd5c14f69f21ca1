"""Where streams stand, their batches, and the exploration behind guesses."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0012_gate_stages"),
        ("learner", "0009_feature_projections"),
        ("privacy", "0002_ledger_rules"),
    ]

    operations = [
        migrations.AddField(
            model_name="trainingrun",
            name="stream_batches",
            field=models.PositiveIntegerField(
                blank=True, help_text="Batches of a stream behind the version; null in a pool.", null=True
            ),
        ),
        migrations.CreateModel(
            name="Stream",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "attempt",
                    models.PositiveSmallIntegerField(default=1, help_text="Which attempt to pay for the stream."),
                ),
                ("next_slot", models.BigIntegerField(default=0)),
                ("batches_closed", models.PositiveIntegerField(default=0)),
                (
                    "open_slots",
                    models.JSONField(default=list, help_text="Selected slots of the batch that is still open."),
                ),
                ("batches_used", models.PositiveIntegerField(default=0, help_text="Batches that made their update.")),
                (
                    "batches_released",
                    models.PositiveIntegerField(default=0, help_text="Batches the newest release learned from."),
                ),
                ("learner_state", models.JSONField(blank=True, help_text="Weights after the last update.", null=True)),
                (
                    "entry",
                    models.OneToOneField(
                        blank=True,
                        help_text="The committed entry that pays for all of it; nothing is examined before there is one.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.ledgerentry",
                    ),
                ),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="stream", to="annotation.project"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="StreamBatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("end", models.BigIntegerField(help_text="The first slot after it.")),
                (
                    "questions",
                    models.PositiveIntegerField(help_text="Records selected; secret where windows are hidden."),
                ),
                ("closes_at", models.DateTimeField(help_text="When its update is made, whatever is answered.")),
                (
                    "stream",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="batches",
                        to="learner.stream",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "stream batches",
            },
        ),
        migrations.CreateModel(
            name="StreamGuess",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("direction", models.JSONField()),
                (
                    "query",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="stream_guess", to="annotation.query"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "stream guesses",
            },
        ),
        migrations.AddConstraint(
            model_name="stream",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("batches_released__lte", models.F("batches_used")),
                    ("batches_used__lte", models.F("batches_closed")),
                ),
                name="learner_stream_in_order",
            ),
        ),
        migrations.AddConstraint(
            model_name="stream",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("entry__isnull", False),
                    models.Q(("batches_closed", 0), ("learner_state", None), ("next_slot", 0)),
                    _connector="OR",
                ),
                name="learner_stream_paid",
            ),
        ),
        migrations.AddConstraint(
            model_name="streambatch",
            constraint=models.UniqueConstraint(fields=("stream", "number"), name="learner_stream_batch_once"),
        ),
    ]
