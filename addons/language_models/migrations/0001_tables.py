"""Language models at work."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("annotation", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="MachineAnnotator",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "requests",
                    models.PositiveIntegerField(default=0, help_text="Sent so far, counted before each is sent."),
                ),
                ("unusable", models.PositiveIntegerField(default=0, help_text="Replies that named no class.")),
                ("tokens", models.PositiveBigIntegerField(default=0, help_text="As the endpoint counts them.")),
                ("faults", models.PositiveIntegerField(default=0, help_text="Runs in a row that ended with a fault.")),
                ("last_fault", models.CharField(blank=True, max_length=200)),
                ("next_at", models.DateTimeField(blank=True, help_text="Nothing is sent before.", null=True)),
                (
                    "leased_until",
                    models.DateTimeField(blank=True, help_text="A worker is at it until then.", null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "machine",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="language_model",
                        to="annotation.machine",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("faults", 0), models.Q(("last_fault", ""), _negated=True), _connector="OR"),
                        name="language_models_fault_said",
                    )
                ],
            },
        ),
    ]
