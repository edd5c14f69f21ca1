"""A manager may settle a question for a class nobody named."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0016_dropout_measure"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="consensus",
            name="annotation_consensus_majority",
        ),
        migrations.AddConstraint(
            model_name="consensus",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("agreeing__lte", models.F("votes")),
                    models.Q(("agreeing__gte", 1), ("settled_by__isnull", False), _connector="OR"),
                ),
                name="annotation_consensus_majority",
            ),
        ),
    ]
