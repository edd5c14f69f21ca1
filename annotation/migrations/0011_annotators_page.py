"""The annotator's page: guidelines in versions, reports, limits for one person, answers sent once."""

from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0010_stream_rules"),
        ("privacy", "0002_ledger_rules"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Encounter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("contributor", models.BinaryField(max_length=16)),
            ],
        ),
        migrations.CreateModel(
            name="Guidelines",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("text", models.TextField(blank=True)),
                ("examples", models.JSONField(default=list, help_text="Objects with text, choice and reason.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name_plural": "guidelines",
            },
        ),
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[("broken", "broken"), ("sensitive", "sensitive"), ("comment", "comment")],
                        max_length=10,
                    ),
                ),
                ("comment", models.CharField(blank=True, max_length=1000)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("resolved_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.AddField(
            model_name="label",
            name="key",
            field=models.UUIDField(
                blank=True, help_text="Of the page that sent it, so that it is stored once.", null=True
            ),
        ),
        migrations.AddField(
            model_name="membership",
            name="guidelines_seen",
            field=models.PositiveIntegerField(
                blank=True, help_text="Version the person knows; null before the first question.", null=True
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="answers_per_day",
            field=models.PositiveIntegerField(blank=True, help_text="Of one person.", null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="answers_per_person",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="confirm_answers",
            field=models.BooleanField(default=False, help_text="An answer counts once it is confirmed."),
        ),
        migrations.AddField(
            model_name="project",
            name="encounter_limit",
            field=models.PositiveIntegerField(
                blank=True, help_text="Contributors, or texts of a gate, that one person may see.", null=True
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="guidelines_version",
            field=models.PositiveIntegerField(default=1),
        ),
        migrations.AddField(
            model_name="project",
            name="quiet_from",
            field=models.TimeField(blank=True, help_text="From then no question is handed out.", null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="quiet_until",
            field=models.TimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="skips_to_set_aside",
            field=models.PositiveSmallIntegerField(
                default=3, help_text="So many people skip a question before it leaves the queue."
            ),
        ),
        migrations.AlterField(
            model_name="query",
            name="state",
            field=models.CharField(
                choices=[
                    ("candidate", "may be asked"),
                    ("open", "being asked"),
                    ("closed", "answered"),
                    ("disputed", "answered without a majority"),
                    ("withdrawn", "not agreed on when its block closed"),
                    ("set_aside", "set aside for a manager to look at"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="label",
            constraint=models.UniqueConstraint(fields=("assignment", "key"), name="annotation_label_key_once"),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(("skips_to_set_aside__gte", 1)), name="annotation_project_skips"
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("quiet_from", None), ("quiet_until", None)),
                    models.Q(
                        ("quiet_from__isnull", False),
                        ("quiet_until__isnull", False),
                        models.Q(("quiet_from", models.F("quiet_until")), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="annotation_project_quiet_hours",
            ),
        ),
        migrations.AddField(
            model_name="encounter",
            name="annotator",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="encounter",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="annotation.project",
            ),
        ),
        migrations.AddField(
            model_name="guidelines",
            name="author",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="guidelines",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="guideline_versions",
                to="annotation.project",
            ),
        ),
        migrations.AddField(
            model_name="report",
            name="annotator",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="report",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="reports",
                to="annotation.project",
            ),
        ),
        migrations.AddField(
            model_name="report",
            name="query",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="reports", to="annotation.query"
            ),
        ),
        migrations.AddField(
            model_name="report",
            name="resolved_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="encounter",
            constraint=models.UniqueConstraint(
                fields=("project", "annotator", "contributor"), name="annotation_encounter_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="guidelines",
            constraint=models.UniqueConstraint(fields=("project", "version"), name="annotation_guidelines_version"),
        ),
        migrations.AddIndex(
            model_name="report",
            index=models.Index(
                condition=models.Q(("resolved_at", None)), fields=["project", "id"], name="annotation_report_open"
            ),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.UniqueConstraint(
                condition=models.Q(models.Q(("kind", "comment"), _negated=True), ("resolved_at", None)),
                fields=("query", "annotator", "kind"),
                name="annotation_report_flag_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("resolved_at", None), ("resolved_by", None)),
                    models.Q(("resolved_at__isnull", False), ("resolved_by__isnull", False)),
                    _connector="OR",
                ),
                name="annotation_report_resolved",
            ),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.CheckConstraint(
                condition=models.Q(("comment", ""), ("kind", "comment"), _negated=True),
                name="annotation_report_comment_says_something",
            ),
        ),
        # Adding a foreign key leaves checks pending, and a table with pending checks takes no trigger.
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", reverse_sql=migrations.RunSQL.noop),
        migrations.RunSQL(
            (SQL / "0011_annotators_page.sql").read_text(),
            reverse_sql=(SQL / "0011_annotators_page.reverse.sql").read_text(),
        ),
    ]
