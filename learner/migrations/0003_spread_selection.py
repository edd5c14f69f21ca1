"""One more way to choose what a crowd is asked."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("learner", "0002_randomized_answers"),
    ]

    operations = [
        migrations.AlterField(
            model_name="round",
            name="strategy",
            field=models.CharField(
                choices=[
                    ("random", "random choice"),
                    ("secret_sample", "secret sample: only models are published"),
                    ("top_c", "private top-c by the released model's uncertainty"),
                    ("exposure_capped_screen", "screen, each record looked at a limited number of times"),
                    ("bernoulli_screen", "screen with two rates, each record looked at once"),
                    ("exponential_screen", "screen with a falling rate, each record looked at once"),
                    ("version_space_screen", "screen by what released models leave undecided"),
                    ("uncertainty", "uncertainty of the gate's output"),
                    ("clustered_uncertainty", "what an answer would tell most, spread over all that passed the gate"),
                    ("all", "every record of a stream"),
                    ("repeat_votes", "more answers to doubtful questions"),
                ],
                max_length=30,
            ),
        ),
    ]
