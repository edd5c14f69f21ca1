"""The words beside a number: a training counts questions that are done, agreed on or not."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0039_record_dataset"),
    ]

    operations = [
        migrations.AlterField(
            model_name="project",
            name="labels_per_release",
            field=models.PositiveIntegerField(help_text="Newly done questions that trigger a training."),
        ),
    ]
