"""How often texts are said in a whole upload."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0014_quality_and_joining"),
    ]

    operations = [
        migrations.CreateModel(
            name="Survey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("normalizer", models.CharField(max_length=4)),
                ("frequencies", models.JSONField(blank=True, null=True)),
                (
                    "dataset",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="survey", to="annotation.dataset"
                    ),
                ),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="survey", to="annotation.job"
                    ),
                ),
            ],
        ),
    ]
