"""How many rows of a feature file are zero because their slots are empty."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("learner", "0015_charged_start"),
    ]

    operations = [
        migrations.AddField(
            model_name="featurematrix",
            name="emptied",
            field=models.BigIntegerField(default=0, help_text="Rows that are zero because their slots are empty."),
        ),
    ]
