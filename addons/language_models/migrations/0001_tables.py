"""Language models at work."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("annotation", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
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
        migrations.CreateModel(
            name="WordsDraft",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("opening", models.UUIDField(blank=True, help_text="The project is not opened yet.", null=True)),
                ("endpoint", models.CharField(max_length=40)),
                ("model", models.CharField(max_length=200)),
                ("classes", models.JSONField()),
                ("question", models.TextField()),
                ("guidelines", models.TextField(blank=True)),
                ("examples", models.PositiveSmallIntegerField(help_text="Of each class.")),
                ("found", models.JSONField(default=list, help_text="Pairs of a class and a text.")),
                ("fault", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("project", None), ("opening", None), _connector="XOR"),
                        name="language_models_draft_of_one",
                    )
                ],
            },
        ),
    ]
