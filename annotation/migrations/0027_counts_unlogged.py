"""Counts of tries are worth nothing after a crash, so counting one does not wait for a disk."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("annotation", "0026_upload_drafts")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE annotation_ratecount SET UNLOGGED", reverse_sql="ALTER TABLE annotation_ratecount SET LOGGED"
        ),
    ]
