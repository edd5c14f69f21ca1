"""Two kinds of gate, and a gate that stays once something was charged."""

from pathlib import Path

from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0002_oracle_rules"),
        ("privacy", "0002_ledger_rules"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="project",
            name="annotation_project_crowd_has_gate",
        ),
        migrations.RemoveConstraint(
            model_name="query",
            name="annotation_query_one_source",
        ),
        migrations.AddField(
            model_name="project",
            name="gate_delta",
            field=models.FloatField(blank=True, help_text="Of the threshold gate; of the other it follows.", null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="gate_floor",
            field=models.PositiveIntegerField(
                blank=True, help_text="Smallest true number that can pass the threshold gate.", null=True
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="gate_kind",
            field=models.CharField(
                choices=[("k_anonymity", "k-anonymity on a secret sample"), ("threshold", "noisy threshold")],
                default="k_anonymity",
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="query",
            name="noisy_count",
            field=models.FloatField(blank=True, help_text="What the threshold gate hands out instead.", null=True),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("labels_account", None), ("oracle", "trusted")),
                    models.Q(
                        models.Q(
                            models.Q(
                                ("gate_delta", None),
                                ("gate_floor", None),
                                ("gate_k__gte", 2),
                                ("gate_k__isnull", False),
                                ("gate_kind", "k_anonymity"),
                                ("gate_sampling_rate__gt", 0),
                                ("gate_sampling_rate__isnull", False),
                                ("gate_sampling_rate__lt", 1),
                            ),
                            models.Q(
                                ("gate_delta__gt", 0),
                                ("gate_delta__isnull", False),
                                ("gate_delta__lt", 1),
                                ("gate_floor__gte", 2),
                                ("gate_floor__isnull", False),
                                ("gate_k", None),
                                ("gate_kind", "threshold"),
                                ("gate_sampling_rate", None),
                            ),
                            _connector="OR",
                        ),
                        ("data_kind", "text"),
                        ("gate_epsilon__gt", 0),
                        ("gate_epsilon__isnull", False),
                        ("labels_account__isnull", False),
                        ("oracle", "crowd"),
                    ),
                    _connector="OR",
                ),
                name="annotation_project_crowd_has_gate",
            ),
        ),
        migrations.AddConstraint(
            model_name="query",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("gate_run", None),
                        ("noisy_count", None),
                        ("record__isnull", False),
                        ("sample_count", None),
                        ("text", None),
                    ),
                    models.Q(
                        models.Q(
                            models.Q(("noisy_count", None), ("sample_count__gte", 2), ("sample_count__isnull", False)),
                            models.Q(("noisy_count__isnull", False), ("sample_count", None)),
                            _connector="OR",
                        ),
                        ("gate_run__isnull", False),
                        ("record", None),
                        ("text__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="annotation_query_one_source",
            ),
        ),
        migrations.RunSQL(
            (SQL / "0003_gate_kinds.sql").read_text(),
            reverse_sql=(SQL / "0003_gate_kinds.reverse.sql").read_text(),
        ),
    ]
