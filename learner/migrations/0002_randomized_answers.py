"""Answers that leave through a randomised response: what pays for all of them, and what was said, once each."""

from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0001_tables"),
        ("learner", "0001_tables"),
        ("privacy", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="AnswerSeries",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveSmallIntegerField(default=1, help_text="Which attempt to pay for them.")),
                (
                    "entry",
                    models.OneToOneField(
                        blank=True,
                        help_text="The committed entry that pays for all of them; nothing is said before there is one.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.ledgerentry",
                    ),
                ),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="answer_series",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "answer series",
            },
        ),
        migrations.CreateModel(
            name="RandomizedLabel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveSmallIntegerField(help_text="Which response to the question, from 1.")),
                ("answers", models.PositiveSmallIntegerField(help_text="How many answers the question had by then.")),
                ("said", models.PositiveSmallIntegerField(help_text="The class that was said.")),
                (
                    "kept",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveSmallIntegerField(),
                        help_text="The classes that could have been said; public.",
                        size=None,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "entry",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.ledgerentry",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="annotation.project",
                    ),
                ),
                (
                    "query",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="randomized_labels",
                        to="annotation.query",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "id"], name="learner_randomized_project")],
                "constraints": [
                    models.UniqueConstraint(fields=("query", "number"), name="learner_randomized_label_once"),
                    models.UniqueConstraint(
                        fields=("query", "answers"), name="learner_randomized_label_once_for_answers"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("answers__gte", 1), ("kept__len__gte", 1), ("number__gte", 1)),
                        name="learner_randomized_label_shape",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            (SQL / "responses_stay.sql").read_text(),
            reverse_sql=(SQL / "responses_stay.reverse.sql").read_text(),
        ),
    ]
