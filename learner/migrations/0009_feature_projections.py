"""Principal directions of a project's images, with the entry that paid for them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0013_feature_choice"),
        ("learner", "0008_screen_looks_left"),
        ("privacy", "0002_ledger_rules"),
    ]

    operations = [
        migrations.CreateModel(
            name="FeatureProjection",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("components", models.JSONField(help_text="Released directions, one row each.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "entry",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="privacy.ledgerentry"
                    ),
                ),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="feature_projection",
                        to="annotation.project",
                    ),
                ),
            ],
        ),
    ]
