"""MC dropout as a measure of uncertainty, where its library is installed."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0015_survey")]

    operations = [
        migrations.AlterField(
            model_name="project",
            name="uncertainty_measure",
            field=models.CharField(
                choices=[
                    ("entropy", "entropy of all classes"),
                    ("margin", "margin between the two likeliest classes"),
                    ("least_confidence", "doubt about the likeliest class"),
                    ("mc_dropout", "disagreement of a network over dropout (extra “deep”)"),
                ],
                default="entropy",
                max_length=20,
            ),
        ),
    ]
