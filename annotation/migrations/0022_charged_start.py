"""A private labelled upload may start the first model, on an account of its own."""

from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"
# The type of a column that a trigger names cannot change under it.
DROP_TRIGGER = "DROP TRIGGER annotation_dataset_role_fixed ON annotation_dataset"
MAKE_TRIGGER = """
CREATE TRIGGER annotation_dataset_role_fixed BEFORE UPDATE OF role, project_id ON annotation_dataset
    FOR EACH ROW WHEN ((OLD.role, OLD.project_id) IS DISTINCT FROM (NEW.role, NEW.project_id))
    EXECUTE FUNCTION annotation_refuse('the role and the project of a dataset never change')
"""


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0021_history"),
        ("privacy", "0002_ledger_rules"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(DROP_TRIGGER, reverse_sql=MAKE_TRIGGER),
        migrations.AddField(
            model_name="dataset",
            name="account",
            field=models.OneToOneField(
                blank=True,
                help_text="Of private examples that start the first model: what they pay from.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="started_by",
                to="privacy.budgetaccount",
            ),
        ),
        migrations.AlterField(
            model_name="dataset",
            name="role",
            field=models.CharField(
                choices=[
                    ("pool", "private pool"),
                    ("public_test", "public test set"),
                    ("public_start", "public examples that start the first model"),
                    ("charged_start", "private examples that start the first model"),
                ],
                default="pool",
                max_length=13,
            ),
        ),
        migrations.AddConstraint(
            model_name="dataset",
            constraint=models.UniqueConstraint(
                condition=models.Q(("role", "charged_start"), models.Q(("state", "refused"), _negated=True)),
                fields=("project",),
                name="annotation_dataset_one_start",
            ),
        ),
        migrations.AddConstraint(
            model_name="dataset",
            constraint=models.CheckConstraint(
                condition=models.Q(("role", "charged_start"), ("account", None), _connector="XOR"),
                name="annotation_dataset_account",
            ),
        ),
        migrations.RunSQL(MAKE_TRIGGER, reverse_sql=DROP_TRIGGER),
        migrations.RunSQL(
            (SQL / "0022_start_labels.sql").read_text(),
            reverse_sql=(SQL / "0022_start_labels.reverse.sql").read_text(),
        ),
    ]
