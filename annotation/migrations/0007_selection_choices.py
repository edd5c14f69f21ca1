"""Screens, uncertainty measures and estimators a project may choose, and public examples to start from."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0006_label_budget"),
        ("privacy", "0002_ledger_rules"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="project",
            name="annotation_project_selection_fits_oracle",
        ),
        migrations.AddField(
            model_name="project",
            name="estimator",
            field=models.CharField(
                choices=[
                    ("logistic", "logistic regression, objective perturbation"),
                    ("logistic_gaussian", "logistic regression, Gaussian objective perturbation (has a delta)"),
                    ("logistic_output", "logistic regression, output perturbation"),
                    ("huber_svm", "Huber SVM, objective perturbation"),
                    ("huber_svm_gaussian", "Huber SVM, Gaussian objective perturbation (has a delta)"),
                    ("huber_svm_output", "Huber SVM, output perturbation"),
                    ("minibatch_svm", "SVM by noisy steps on batches"),
                ],
                default="logistic",
                max_length=30,
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="exponential_threshold",
            field=models.FloatField(
                default=0.5, help_text="Distance below which the exponential screen treats all alike."
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="exposures",
            field=models.PositiveSmallIntegerField(default=3, help_text="How often a screen may look at a record."),
        ),
        migrations.AddField(
            model_name="project",
            name="half_angle",
            field=models.FloatField(
                default=0.2, help_text="Angle around the released weights, in radians, that is taken to hold the truth."
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="repeat_votes",
            field=models.BooleanField(
                default=False, help_text="Once half of the texts were asked, ask about doubtful answers again."
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="screen_high",
            field=models.FloatField(default=0.1, help_text="Probability of a question near the boundary."),
        ),
        migrations.AddField(
            model_name="project",
            name="screen_low",
            field=models.FloatField(default=0.05, help_text="Probability of a question elsewhere."),
        ),
        migrations.AddField(
            model_name="project",
            name="screen_reach",
            field=models.FloatField(default=0.1, help_text="Distance from the boundary that counts as near."),
        ),
        migrations.AddField(
            model_name="project",
            name="screened_blocks",
            field=models.BooleanField(
                default=False, help_text="From the second secret block on, prefer what lies near the boundary."
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="smoothing",
            field=models.FloatField(default=0.5, help_text="Half width of the bend of the Huber loss."),
        ),
        migrations.AddField(
            model_name="project",
            name="training_delta",
            field=models.FloatField(default=0.0, help_text="Delta of one release; Gaussian noise needs it."),
        ),
        migrations.AddField(
            model_name="project",
            name="uncertainty_measure",
            field=models.CharField(
                choices=[
                    ("entropy", "entropy of all classes"),
                    ("margin", "margin between the two likeliest classes"),
                    ("least_confidence", "doubt about the likeliest class"),
                ],
                default="entropy",
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="dataset",
            name="role",
            field=models.CharField(
                choices=[
                    ("pool", "private pool"),
                    ("public_test", "public test set"),
                    ("public_start", "public examples that start the first model"),
                ],
                default="pool",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="project",
            name="selection",
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
                ],
                max_length=30,
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("selection", "random"),
                    models.Q(("oracle", "trusted"), ("selection", "top_c"), ("selection_epsilon__gt", 0)),
                    models.Q(("oracle", "crowd"), ("selection", "uncertainty")),
                    models.Q(
                        ("oracle", "trusted"),
                        ("selection", "secret_sample"),
                        ("selection_rate__gt", 0),
                        ("selection_rate__isnull", False),
                        ("selection_rate__lt", 1),
                    ),
                    models.Q(
                        models.Q(
                            ("screen_high__gte", models.F("screen_low")), ("screen_high__lt", 1), ("screen_low__gt", 0)
                        ),
                        ("oracle", "trusted"),
                        ("selection__in", ("exposure_capped_screen", "bernoulli_screen", "version_space_screen")),
                    ),
                    models.Q(
                        ("exponential_threshold__gt", 0),
                        ("oracle", "trusted"),
                        ("selection", "exponential_screen"),
                        ("selection_epsilon__gt", 0),
                    ),
                    _connector="OR",
                ),
                name="annotation_project_selection_fits_oracle",
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(("exposures__gte", 1)), name="annotation_project_exposures"
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("training_delta__gte", 0),
                    ("training_delta__lt", 1),
                    models.Q(
                        models.Q(
                            ("estimator__in", ("logistic_gaussian", "huber_svm_gaussian")), ("training_delta__gt", 0)
                        ),
                        models.Q(
                            models.Q(("estimator__in", ("logistic_gaussian", "huber_svm_gaussian")), _negated=True),
                            ("training_delta", 0),
                        ),
                        _connector="OR",
                    ),
                ),
                name="annotation_project_training_delta",
            ),
        ),
    ]
