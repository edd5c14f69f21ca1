"""Webhooks and their deliveries."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

from privacy.first_migration import FirstMigration


class Migration(FirstMigration):
    dependencies = [("annotation", "0001_tables")]

    operations = [
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("url", models.CharField(max_length=500)),
                ("events", models.JSONField(help_text="Names of the events, at least one.")),
                (
                    "event_since",
                    models.JSONField(
                        default=dict, help_text="Events chosen later, each with the moment from which on it is told."
                    ),
                ),
                ("salt", models.BinaryField(max_length=32)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
                ("told_at", models.DateTimeField(blank=True, null=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="webhooks", to="annotation.project"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                (
                    "event",
                    models.CharField(
                        choices=[
                            ("release", "new release"),
                            ("budget", "budget at 80 %"),
                            ("round", "round done"),
                            ("retired", "release retired"),
                            ("channel", "channel moved"),
                            ("limit", "limit changed"),
                            ("upload", "upload read or refused"),
                            ("gate", "upload through the gate"),
                            ("settings", "settings or state changed"),
                            ("report", "question reported"),
                            ("review", "answers wait for review"),
                            ("waiting", "project waits for a decision"),
                            ("failed", "work failed"),
                            ("member", "member joined, paused or left"),
                            ("guidelines", "new version of the guidelines"),
                            ("study", "study on a crowd platform moved on"),
                            ("request", "request to a second manager"),
                            ("forgotten", "contributor forgotten"),
                            ("archived", "project archived or taken out of the archive"),
                            ("finished", "longer work done"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "subject",
                    models.CharField(help_text="Event and its subject; sent once.", max_length=120),
                ),
                ("body", models.TextField()),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "waiting"), ("sent", "sent"), ("given_up", "given up")],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("url", models.CharField(blank=True, help_text="Where it was last sent.", max_length=500)),
                ("next_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                ("queued_until", models.DateTimeField(null=True, blank=True)),
                (
                    "answer",
                    models.CharField(blank=True, help_text="Status or fault of the last attempt.", max_length=200),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                (
                    "webhook",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="deliveries", to="webhooks.webhook"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "webhook deliveries",
                "constraints": [
                    models.UniqueConstraint(fields=("webhook", "event", "subject"), name="webhooks_delivery_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "sent"), _negated=True), ("sent_at__isnull", False), _connector="OR"
                        ),
                        name="webhooks_delivery_sent",
                    ),
                ],
            },
        ),
    ]
