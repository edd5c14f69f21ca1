"""What each part of a file was compared with, whether a row of it stands elsewhere, and who is told."""

from django.db import migrations, models

import privacy.models.messages


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0001_tables"),
    ]

    operations = [
        migrations.AddField(
            model_name="dataset",
            name="told_uploader",
            field=privacy.models.messages.MessageField(
                blank=True, help_text="Why it was refused, for who uploaded it alone."
            ),
        ),
        migrations.AddField(
            model_name="importpart",
            name="compared",
            field=models.JSONField(default=list, help_text="Data of another role that its rows were compared with."),
        ),
        migrations.AddField(
            model_name="importpart",
            name="shared",
            field=models.BooleanField(default=False, help_text="A row of it stands in those data."),
        ),
    ]
