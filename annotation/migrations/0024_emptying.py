"""Records and questions whose content is erased, and the requests to forget a contributor."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0023_guarantee_last"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Forgetting",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "contributor",
                    models.BinaryField(
                        help_text="The pseudonym, until nothing of it is left.", max_length=16, null=True
                    ),
                ),
                ("reference", models.CharField(max_length=32)),
                ("actor", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="consensus",
            name="annotation_consensus_majority",
        ),
        migrations.AddField(
            model_name="query",
            name="emptied",
            field=models.BooleanField(
                db_default=False,
                help_text="What was answered is erased; the question counts as one with an empty slot.",
            ),
        ),
        migrations.AddField(
            model_name="record",
            name="emptied",
            field=models.BooleanField(
                db_default=False, help_text="Its content is erased; the slot stays, as the empty one of the guarantee."
            ),
        ),
        migrations.AlterField(
            model_name="label",
            name="choice",
            field=models.PositiveSmallIntegerField(help_text="Null once the question was emptied.", null=True),
        ),
        migrations.AddConstraint(
            model_name="consensus",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("agreeing__lte", models.F("votes")),
                        models.Q(("agreeing__gte", 1), ("settled_by__isnull", False), _connector="OR"),
                    ),
                    models.Q(("agreeing", 0), ("choice", 0), ("settled_by", None), ("votes", 0)),
                    _connector="OR",
                ),
                name="annotation_consensus_majority",
            ),
        ),
        migrations.AddConstraint(
            model_name="query",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("emptied", False), models.Q(("open_slots", 0), ("state", "withdrawn")), _connector="OR"
                ),
                name="annotation_query_emptied",
            ),
        ),
        migrations.AddConstraint(
            model_name="record",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("emptied", False),
                    models.Q(
                        models.Q(("text", None), ("text", ""), _connector="OR"),
                        ("contributor", None),
                        ("label", None),
                        ("payload", None),
                    ),
                    _connector="OR",
                ),
                name="annotation_record_emptied",
            ),
        ),
        migrations.AddField(
            model_name="forgetting",
            name="job",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="forgetting", to="annotation.job"
            ),
        ),
        migrations.AddField(
            model_name="forgetting",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="forgettings",
                to="annotation.project",
            ),
        ),
        migrations.AddIndex(
            model_name="forgetting",
            index=models.Index(fields=["project", "id"], name="annotation_forgetting_project"),
        ),
        migrations.AddConstraint(
            model_name="forgetting",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("contributor__isnull", False), ("finished_at", None)),
                    models.Q(("contributor", None), ("finished_at__isnull", False)),
                    _connector="OR",
                ),
                name="annotation_forgetting_forgets",
            ),
        ),
        migrations.AddConstraint(
            model_name="forgetting",
            constraint=models.UniqueConstraint(
                condition=models.Q(("finished_at", None)),
                fields=("project", "reference"),
                name="annotation_forgetting_once",
            ),
        ),
        migrations.RunSQL(
            (SQL / "0024_emptying.sql").read_text(),
            reverse_sql=(SQL / "0024_emptying.reverse.sql").read_text(),
        ),
    ]
