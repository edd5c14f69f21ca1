"""A plan of a project that is not opened yet is simulated by a job of no project."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0033_kinds")]

    operations = [
        migrations.AlterField(
            model_name="job",
            name="project",
            field=models.ForeignKey(
                help_text="None for a project not opened yet.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="jobs",
                to="annotation.project",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(("project__isnull", False), ("kind", "simulate"), _connector="OR"),
                name="annotation_job_project",
            ),
        ),
    ]
