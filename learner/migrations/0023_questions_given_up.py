"""How many questions had been given up when a training began, so that the next one need not count labels."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("learner", "0022_row_parts"),
    ]

    operations = [
        migrations.AddField(
            model_name="trainingrun",
            name="unagreed",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="Questions given up without an agreed answer before it began."
            ),
        ),
    ]
