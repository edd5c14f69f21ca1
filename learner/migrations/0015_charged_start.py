"""What the account of private examples that start the first model was charged."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("learner", "0014_webhooks"),
        ("privacy", "0002_ledger_rules"),
    ]

    operations = [
        migrations.AddField(
            model_name="warmstart",
            name="entry",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="privacy.ledgerentry",
            ),
        ),
        migrations.AlterField(
            model_name="warmstart",
            name="examples",
            field=models.PositiveIntegerField(help_text="Of private ones the slots, whose number is public."),
        ),
    ]
