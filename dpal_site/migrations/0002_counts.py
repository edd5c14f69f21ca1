"""Counts of tries are worth nothing after a crash: no try waits for a disk. The cache that threw live ones away goes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dpal_site", "0001_heartbeat"),
    ]

    operations = [
        migrations.CreateModel(
            name="CachedCount",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("value", models.JSONField()),
                ("ends_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="GuessCount",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("tries", models.PositiveIntegerField()),
                ("next_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.RunSQL(
            "ALTER TABLE dpal_site_cachedcount SET UNLOGGED; ALTER TABLE dpal_site_guesscount SET UNLOGGED",
            reverse_sql=migrations.RunSQL.noop,
        ),
        migrations.RunSQL(
            "DROP TABLE site_cache",
            reverse_sql="CREATE UNLOGGED TABLE site_cache (cache_key varchar(255) PRIMARY KEY, value text NOT NULL, "
            "expires timestamptz NOT NULL); CREATE INDEX site_cache_expires ON site_cache (expires)",
        ),
    ]
