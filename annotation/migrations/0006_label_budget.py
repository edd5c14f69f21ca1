"""How many answers a project may ask for, and their price."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0005_secret_samples"),
        ("privacy", "0002_ledger_rules"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="project",
            name="currency",
            field=models.CharField(blank=True, max_length=3),
        ),
        migrations.AddField(
            model_name="project",
            name="labels_limit",
            field=models.PositiveIntegerField(blank=True, help_text="Answers to ask for in all.", null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="money_limit",
            field=models.DecimalField(blank=True, decimal_places=2, max_digits=12, null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="price_per_label",
            field=models.DecimalField(blank=True, decimal_places=4, max_digits=10, null=True),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("money_limit", None), ("price_per_label", None)),
                    models.Q(
                        models.Q(("money_limit", None), ("money_limit__gte", 0), _connector="OR"),
                        ("price_per_label__gt", 0),
                        ("price_per_label__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="annotation_project_money_has_price",
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("selection", "secret_sample"), _negated=True),
                    models.Q(("labels_limit", None), ("money_limit", None)),
                    _connector="OR",
                ),
                name="annotation_project_limit_tells_nothing",
            ),
        ),
    ]
