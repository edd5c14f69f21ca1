"""How often screens looked at records, and models of public examples."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0007_selection_choices"),
        ("learner", "0004_coins_stay"),
    ]

    operations = [
        migrations.AlterField(
            model_name="round",
            name="strategy",
            field=models.CharField(
                choices=[
                    ("random", "random choice"),
                    ("secret_sample", "secret sample: only models are published"),
                    ("top_c", "private top-c by the released model's uncertainty"),
                    ("exposure_capped_screen", "screen, each record looked at a limited number of times"),
                    ("bernoulli_screen", "screen with two rates, each record looked at once"),
                    ("exponential_screen", "screen with a falling rate, each record looked at once"),
                    ("version_space_screen", "screen by what released models leave undecided"),
                    ("uncertainty", "uncertainty of the gate's output"),
                ],
                max_length=30,
            ),
        ),
        migrations.CreateModel(
            name="ScreenLooks",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("looks", models.BinaryField(help_text="One byte for each row.")),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "dataset",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="screen_looks",
                        to="annotation.dataset",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WarmStart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("weights", models.JSONField(help_text="Coefficients, as in weights.json.")),
                ("features_version", models.CharField(max_length=120)),
                ("examples", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "dataset",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="warm_start", to="annotation.dataset"
                    ),
                ),
            ],
        ),
    ]
