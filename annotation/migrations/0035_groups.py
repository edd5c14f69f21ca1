"""Groups of people, their roles in projects, and invitations into them."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0034_job_without_project"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="membership",
            name="is_direct",
            field=models.BooleanField(
                db_default=True, default=True, help_text="Given to this person; else only groups give it."
            ),
        ),
        migrations.AlterField(
            model_name="invitation",
            name="project",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="invitations",
                to="annotation.project",
            ),
        ),
        migrations.AlterField(
            model_name="invitation",
            name="role",
            field=models.CharField(blank=True, max_length=10),
        ),
        migrations.CreateModel(
            name="PeopleGroup",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80, verbose_name="name")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="GroupRole",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("role", models.CharField(max_length=10)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="group_roles", to="annotation.project"
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="roles",
                        to="annotation.peoplegroup",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="GroupMember",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="group_places",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="annotation.peoplegroup",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="invitation",
            name="group",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="invitations",
                to="annotation.peoplegroup",
            ),
        ),
        migrations.AddConstraint(
            model_name="invitation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("group", None), ("project__isnull", False), models.Q(("role", ""), _negated=True)),
                    models.Q(("group__isnull", False), ("project", None), ("role", "")),
                    _connector="OR",
                ),
                name="annotation_invitation_into_one",
            ),
        ),
        migrations.AddConstraint(
            model_name="peoplegroup",
            constraint=models.UniqueConstraint(
                django.db.models.functions.text.Lower("name"), name="annotation_group_name_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="peoplegroup",
            constraint=models.CheckConstraint(
                condition=models.Q(("name", ""), _negated=True), name="annotation_group_named"
            ),
        ),
        migrations.AddConstraint(
            model_name="grouprole",
            constraint=models.UniqueConstraint(fields=("group", "project", "role"), name="annotation_grouprole_once"),
        ),
        migrations.AddConstraint(
            model_name="grouprole",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ("annotator", "manager", "engineer"))),
                name="annotation_grouprole_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="groupmember",
            constraint=models.UniqueConstraint(fields=("group", "user"), name="annotation_groupmember_once"),
        ),
        migrations.RunSQL(
            (SQL / "0035_groups.sql").read_text(), reverse_sql=(SQL / "0035_groups.reverse.sql").read_text()
        ),
    ]
