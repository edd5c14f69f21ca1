"""How many records a screen may still look at."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("learner", "0007_stream_selections"),
    ]

    operations = [
        migrations.AddField(
            model_name="screenlooks",
            name="left",
            field=models.BigIntegerField(default=0, help_text="Records not asked about that may still be looked at."),
        ),
    ]
