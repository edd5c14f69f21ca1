"""Parts of scores name their rows by runs; what is stored of them is not compressed, which took longer than scoring."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("learner", "0023_questions_given_up")]

    operations = [
        # A round that is under way makes its parts anew.
        migrations.RunSQL("DELETE FROM learner_scorepart", reverse_sql="DELETE FROM learner_scorepart"),
        migrations.RemoveField("scorepart", "rows"),
        migrations.AddField(
            "scorepart",
            "runs",
            models.BinaryField(
                default=b"",
                help_text="Rows of the stacked features: first and length of each run, eight bytes each.",
            ),
            preserve_default=False,
        ),
        migrations.RunSQL(
            "ALTER TABLE learner_scorepart ALTER COLUMN scores SET STORAGE EXTERNAL",
            reverse_sql="ALTER TABLE learner_scorepart ALTER COLUMN scores SET STORAGE EXTENDED",
        ),
    ]
