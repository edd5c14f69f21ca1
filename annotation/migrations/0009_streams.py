"""Streams of records: when they update, what waits to be examined."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0008_public_labels"),
        ("privacy", "0002_ledger_rules"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RecordPost",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.BinaryField(help_text="Digest of the sender's idempotency key.", max_length=32)),
                (
                    "body_digest",
                    models.BinaryField(help_text="Keyed, so that nobody can try records out.", max_length=32),
                ),
                ("first_slot", models.BigIntegerField()),
                ("record_count", models.PositiveIntegerField()),
                (
                    "body",
                    models.BinaryField(blank=True, help_text="The records as JSON; null once examined.", null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="project",
            name="annotation_project_limit_tells_nothing",
        ),
        migrations.RemoveConstraint(
            model_name="project",
            name="annotation_project_selection_fits_oracle",
        ),
        migrations.RemoveConstraint(
            model_name="project",
            name="annotation_project_training_delta",
        ),
        migrations.RemoveConstraint(
            model_name="query",
            name="annotation_query_one_source",
        ),
        migrations.AddField(
            model_name="project",
            name="average_iterates",
            field=models.BooleanField(default=True, help_text="Release the average of all iterates."),
        ),
        migrations.AddField(
            model_name="project",
            name="drop_unselected",
            field=models.BooleanField(
                default=False, help_text="Keep no record of a stream that nobody is asked about."
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="expected_answers",
            field=models.PositiveIntegerField(
                blank=True, help_text="Public number of answers for which online learning sets its step.", null=True
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="noise_sigma",
            field=models.FloatField(blank=True, help_text="Noise of each coordinate of a gradient.", null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="question_kind",
            field=models.CharField(
                choices=[("choose", "choose a class"), ("confirm", "say whether the model's guess is right")],
                default="choose",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="step_size",
            field=models.FloatField(blank=True, help_text="Constant step of mini-batch learning.", null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="update_policy",
            field=models.CharField(
                choices=[
                    ("per_round", "pool: whenever a fixed number of new labels has come in"),
                    ("doubling", "whenever the number of labels, or of a stream's records, has doubled"),
                    ("immediate", "stream: after every record that was asked about"),
                    ("flsw", "stream: windows of a fixed number of records, selection visible"),
                    ("flsw_hidden", "stream: windows of a fixed number of records, selection hidden"),
                    ("flmb", "stream: batches of a fixed number of questions"),
                ],
                default="per_round",
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="updates_per_release",
            field=models.PositiveIntegerField(
                default=1, help_text="Updates after which a model of a stream is released."
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="weight_radius",
            field=models.FloatField(blank=True, help_text="Radius of the ball that holds the weights.", null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="window_denominator",
            field=models.PositiveIntegerField(
                blank=True, help_text="Public number a hidden window's sum is divided by.", null=True
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="window_hours",
            field=models.PositiveIntegerField(
                default=24, help_text="Hours after which a window or batch makes its update, whatever is answered."
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="window_length",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Records of a stream's window, questions of a batch, records of block 1.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="windows_ahead",
            field=models.PositiveSmallIntegerField(
                default=1, help_text="Windows or batches that may wait for answers while further records are examined."
            ),
        ),
        migrations.AddField(
            model_name="query",
            name="guess",
            field=models.PositiveSmallIntegerField(
                blank=True, help_text="The class the annotator is asked to confirm.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="project",
            name="arrival",
            field=models.CharField(
                choices=[
                    ("pool", "pool: uploads, asked in rounds"),
                    ("stream", "stream: records posted one by one, each examined once"),
                ],
                default="pool",
                max_length=10,
            ),
        ),
        migrations.AlterField(
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
                    ("mi_ogd", "online gradient descent, one noisy gradient of each record (has a delta)"),
                    ("bandit_ogd", "online gradient descent from confirmations (has a delta)"),
                ],
                default="logistic",
                max_length=30,
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
                    ("all", "every record of a stream"),
                ],
                max_length=30,
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        models.Q(("selection", "secret_sample"), _negated=True),
                        models.Q(("update_policy", "flsw_hidden"), _negated=True),
                    ),
                    models.Q(("labels_limit", None), ("money_limit", None)),
                    _connector="OR",
                ),
                name="annotation_project_limit_tells_nothing",
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
                    models.Q(("arrival", "stream"), ("oracle", "trusted"), ("selection", "all")),
                    _connector="OR",
                ),
                name="annotation_project_selection_fits_oracle",
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
                            ("estimator__in", ("logistic_gaussian", "huber_svm_gaussian", "mi_ogd", "bandit_ogd")),
                            ("training_delta__gt", 0),
                        ),
                        models.Q(
                            models.Q(
                                ("estimator__in", ("logistic_gaussian", "huber_svm_gaussian", "mi_ogd", "bandit_ogd")),
                                _negated=True,
                            ),
                            ("training_delta", 0),
                        ),
                        _connector="OR",
                    ),
                ),
                name="annotation_project_training_delta",
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("arrival", "pool"),
                        ("question_kind", "choose"),
                        ("update_policy__in", ("per_round", "doubling")),
                        ("window_length", None),
                    ),
                    models.Q(
                        models.Q(
                            models.Q(
                                ("update_policy", "immediate"), ("window_denominator", None), ("window_length", None)
                            ),
                            models.Q(
                                models.Q(
                                    models.Q(
                                        ("update_policy", "flsw_hidden"),
                                        ("window_denominator__gte", 1),
                                        ("window_denominator__isnull", False),
                                    ),
                                    models.Q(
                                        ("update_policy__in", ("flsw", "flmb", "doubling")),
                                        ("window_denominator", None),
                                    ),
                                    _connector="OR",
                                ),
                                ("window_length__gte", 1),
                                ("window_length__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        ("arrival", "stream"),
                        ("estimator__in", ("minibatch_svm", "mi_ogd", "bandit_ogd")),
                        ("oracle", "trusted"),
                        ("overlap", 1),
                        ("selection__in", ("all", "bernoulli_screen", "exponential_screen")),
                        ("updates_per_release__gte", 1),
                        ("window_hours__gte", 1),
                        ("windows_ahead__gte", 1),
                    ),
                    _connector="OR",
                ),
                name="annotation_project_stream",
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("estimator", "bandit_ogd"), ("question_kind", "confirm")),
                    models.Q(
                        models.Q(("question_kind", "confirm"), _negated=True),
                        models.Q(("estimator", "bandit_ogd"), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="annotation_project_confirm_is_bandit",
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
                    _connector="OR",
                ),
                name="annotation_query_one_source",
            ),
        ),
        migrations.AddField(
            model_name="recordpost",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="record_posts",
                to="annotation.project",
            ),
        ),
        migrations.AddIndex(
            model_name="recordpost",
            index=models.Index(
                condition=models.Q(("body__isnull", False)),
                fields=["project", "first_slot"],
                name="annotation_post_waiting",
            ),
        ),
        migrations.AddConstraint(
            model_name="recordpost",
            constraint=models.UniqueConstraint(fields=("project", "key"), name="annotation_post_once"),
        ),
        migrations.AddConstraint(
            model_name="recordpost",
            constraint=models.UniqueConstraint(fields=("project", "first_slot"), name="annotation_post_slot"),
        ),
        migrations.AddConstraint(
            model_name="recordpost",
            constraint=models.CheckConstraint(
                condition=models.Q(("record_count__gte", 1)), name="annotation_post_not_empty"
            ),
        ),
    ]
