"""Hidden checks, what models make of answers, invitations and crowd links."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0013_feature_choice"),
        ("privacy", "0002_ledger_rules"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CrowdLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("token", models.CharField(max_length=43, unique=True)),
                (
                    "platform",
                    models.CharField(choices=[("prolific", "Prolific"), ("mturk", "Mechanical Turk")], max_length=10),
                ),
                (
                    "study",
                    models.CharField(
                        blank=True, help_text="Study or HIT the link is for; empty allows any.", max_length=64
                    ),
                ),
                ("answers_wanted", models.PositiveIntegerField()),
                ("completion_code", models.CharField(max_length=40)),
                ("maximum_participants", models.PositiveIntegerField()),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="CrowdParticipant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("pid_digest", models.BinaryField(max_length=16)),
                ("completed_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="GoldQuery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("choice", models.PositiveSmallIntegerField()),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("public", "public example"),
                            ("asked", "question that was asked, paid for and settled before"),
                        ],
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "gold queries",
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("role", models.CharField(max_length=10)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("note", models.CharField(blank=True, max_length=80)),
                ("maximum_uses", models.PositiveIntegerField(default=1)),
                ("uses", models.PositiveIntegerField(default=0)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="Opinion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("choice", models.PositiveSmallIntegerField()),
                ("probability", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="QualityReport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "method",
                    models.CharField(
                        choices=[
                            ("majority", "majority: every answer counts the same"),
                            ("dawid_skene", "Dawid-Skene: learns which classes each person mixes up"),
                            ("mace", "MACE: learns who guesses"),
                        ],
                        max_length=12,
                    ),
                ),
                ("answers", models.PositiveIntegerField(default=0)),
                ("questions", models.PositiveIntegerField(default=0)),
                (
                    "alpha",
                    models.FloatField(
                        blank=True, help_text="Krippendorff's alpha; empty where nothing overlaps.", null=True
                    ),
                ),
                (
                    "skills",
                    models.JSONField(default=dict, help_text="By person: share of answers equal to the model's."),
                ),
                ("made_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="RateCount",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("tries", models.PositiveIntegerField()),
                ("ends_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="query",
            name="annotation_query_one_source",
        ),
        migrations.AddField(
            model_name="consensus",
            name="settled_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="membership",
            name="judged_from",
            field=models.DateTimeField(blank=True, help_text="Earlier checks no longer count.", null=True),
        ),
        migrations.AddField(
            model_name="membership",
            name="pause_reason",
            field=models.CharField(
                blank=True,
                choices=[("checks", "answers to questions with known answers"), ("manager", "a manager's decision")],
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="membership",
            name="paused_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="aggregation",
            field=models.CharField(
                choices=[
                    ("majority", "majority: every answer counts the same"),
                    ("dawid_skene", "Dawid-Skene: learns which classes each person mixes up"),
                    ("mace", "MACE: learns who guesses"),
                ],
                default="majority",
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="gold_minimum",
            field=models.PositiveSmallIntegerField(default=10, help_text="Checks before anybody is judged."),
        ),
        migrations.AddField(
            model_name="project",
            name="gold_pause_below",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="gold_share",
            field=models.FloatField(default=0.0, help_text="Share of questions whose answer is known."),
        ),
        migrations.AddField(
            model_name="project",
            name="gold_warn_below",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="overlap_limit",
            field=models.PositiveSmallIntegerField(
                blank=True, help_text="Where answers disagree, ask one more person, up to so many in all.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="query",
            name="state",
            field=models.CharField(
                choices=[
                    ("candidate", "may be asked"),
                    ("open", "being asked"),
                    ("gold", "hidden check with a known answer"),
                    ("closed", "answered"),
                    ("disputed", "answered without a majority"),
                    ("withdrawn", "not agreed on when its block closed"),
                    ("set_aside", "set aside for a manager to look at"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(("gold_minimum__gte", 1), ("gold_share__gte", 0), ("gold_share__lte", 1)),
                name="annotation_project_gold",
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
                        ("guess", None),
                        ("record", None),
                        ("text__isnull", False),
                    ),
                    models.Q(
                        ("gate_run", None),
                        ("guess", None),
                        ("noisy_count", None),
                        ("record", None),
                        ("sample_count", None),
                        ("state", "gold"),
                        ("text__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="annotation_query_one_source",
            ),
        ),
        migrations.AddField(
            model_name="crowdlink",
            name="created_by",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="crowdlink",
            name="project",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="crowd_links", to="annotation.project"
            ),
        ),
        migrations.AddField(
            model_name="crowdparticipant",
            name="link",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="participants", to="annotation.crowdlink"
            ),
        ),
        migrations.AddField(
            model_name="crowdparticipant",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="crowd_participations",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="goldquery",
            name="added_by",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="goldquery",
            name="query",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="gold", to="annotation.query"
            ),
        ),
        migrations.AddField(
            model_name="invitation",
            name="created_by",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="invitation",
            name="project",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="invitations", to="annotation.project"
            ),
        ),
        migrations.AddField(
            model_name="opinion",
            name="query",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="annotation.query"
            ),
        ),
        migrations.AddField(
            model_name="qualityreport",
            name="job",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="annotation.job"
            ),
        ),
        migrations.AddField(
            model_name="qualityreport",
            name="project",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE, related_name="quality_report", to="annotation.project"
            ),
        ),
        migrations.AddField(
            model_name="opinion",
            name="report",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="opinions",
                to="annotation.qualityreport",
            ),
        ),
        migrations.AddConstraint(
            model_name="crowdlink",
            constraint=models.CheckConstraint(
                condition=models.Q(("answers_wanted__gte", 1)), name="annotation_crowdlink_wanted"
            ),
        ),
        migrations.AddConstraint(
            model_name="crowdparticipant",
            constraint=models.UniqueConstraint(
                fields=("link", "pid_digest"), name="annotation_participant_once_per_link"
            ),
        ),
        migrations.AddConstraint(
            model_name="invitation",
            constraint=models.CheckConstraint(
                condition=models.Q(("uses__lte", models.F("maximum_uses"))), name="annotation_invitation_uses"
            ),
        ),
        migrations.AddConstraint(
            model_name="opinion",
            constraint=models.UniqueConstraint(fields=("report", "query"), name="annotation_opinion_once"),
        ),
        migrations.AddConstraint(
            model_name="opinion",
            constraint=models.CheckConstraint(
                condition=models.Q(("probability__gte", 0), ("probability__lte", 1)),
                name="annotation_opinion_probability",
            ),
        ),
        migrations.RunSQL(
            (SQL / "0014_hidden_checks.sql").read_text(),
            reverse_sql=(SQL / "0014_hidden_checks.reverse.sql").read_text(),
        ),
    ]
