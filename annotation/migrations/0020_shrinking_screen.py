"""A screen whose slab shrinks with the updates of a stream, fixed like the rest once the stream is paid for."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0019_idempotent_answers")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="screen_shrinks",
            field=models.BooleanField(
                default=False, help_text="After t updates of a stream, near means a distance of at most 1/t."
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("screen_shrinks", False),
                    models.Q(("arrival", "stream"), ("selection", "bernoulli_screen")),
                    _connector="OR",
                ),
                name="annotation_project_screen_shrinks",
            ),
        ),
        migrations.RunSQL(
            """
            CREATE TRIGGER annotation_project_screen_shrinks_fixed
                BEFORE UPDATE OF screen_shrinks ON annotation_project
                FOR EACH ROW WHEN (
                    OLD.arrival = 'stream' AND OLD.screen_shrinks IS DISTINCT FROM NEW.screen_shrinks
                )
                EXECUTE FUNCTION annotation_check_stream_change();
            """,
            reverse_sql="DROP TRIGGER annotation_project_screen_shrinks_fixed ON annotation_project;",
        ),
    ]
