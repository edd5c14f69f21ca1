"""Rounds, scores and releases: their tables and the rules that only triggers can keep."""

import uuid
from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.math
import django.db.models.lookups
from django.conf import settings
from django.db import migrations, models

import privacy.message_fields
from privacy.first_migration import FirstMigration

SQL = Path(__file__).parent / "sql"
# In this order: a rule may call what an earlier file defines.
RULES = (
    "releases_stay",
    "coins_stay",
    "sums_stay",
    "responses_stay",
    "release_whole",
    "public_measures",
    "channels_stay",
    "tombstones",
    "cards_keep_up",
    "search_paths",
)


class Migration(FirstMigration):
    dependencies = [
        ("annotation", "0001_tables"),
        ("privacy", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="MechanismAudit",
            fields=[
                ("fingerprint", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("estimator", models.CharField(max_length=60)),
                ("charged_epsilon", models.FloatField()),
                ("epsilon_lower_bound", models.FloatField()),
                ("trials", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="ModelRelease",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[("candidate", "release candidate"), ("released", "released"), ("retired", "retired")],
                        default="candidate",
                        max_length=10,
                    ),
                ),
                ("estimator", models.CharField(max_length=60)),
                ("event", models.JSONField(help_text="The accountant's event of the training.")),
                ("weights", models.JSONField(help_text="Released coefficients, as in weights.json.")),
                ("features", models.JSONField(help_text="The featuriser, complete.")),
                ("folder", models.CharField(max_length=300)),
                ("digests", models.JSONField(help_text="SHA-256 of each file.")),
                (
                    "guarantee",
                    models.JSONField(
                        help_text="Limits of the accounts as the card prints them, and what was spent when released."
                    ),
                ),
                ("labels_used", models.PositiveIntegerField()),
                ("retired_reason", models.CharField(blank=True, max_length=300)),
                ("checks", privacy.message_fields.MessagesInField(blank=True, default=dict, inside="$.*")),
                ("held_back", privacy.message_fields.MessageField(blank=True, default=str)),
                ("released_at", models.DateTimeField(blank=True, null=True)),
                ("configuration", models.JSONField(default=dict, help_text="The project's settings at the time.")),
                ("environment", models.JSONField(default=dict, help_text="Versions of the code and of the libraries.")),
                (
                    "span_counts",
                    models.JSONField(
                        default=dict,
                        blank=True,
                        help_text="Noisy counts of right, missed and spurious spans of held-out texts, and their noise; mostly empty.",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "entry",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="privacy.ledgerentry"
                    ),
                ),
                ("lineage", models.ManyToManyField(related_name="releases", to="privacy.ledgerentry")),
                (
                    "mechanism_audit",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="releases",
                        to="learner.mechanismaudit",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="releases", to="annotation.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "version"), name="learner_release_version"),
                    models.CheckConstraint(
                        condition=models.Q(("state", "retired"), ("retired_reason", ""), _connector="XOR"),
                        name="learner_release_retired_with_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "released"), _negated=True),
                            models.Q(("held_back", ""), ("released_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="learner_release_passed_the_gate",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PlanSimulation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fingerprint", models.CharField(max_length=64, unique=True)),
                ("setup", models.JSONField()),
                ("epsilon", models.FloatField(help_text="What choosing and training share.")),
                ("result", models.JSONField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "job",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="plan_simulation",
                        to="annotation.job",
                    ),
                ),
                (
                    "draft",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="annotation.openingdraft",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="annotation.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Round",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("strategy", models.CharField(max_length=30)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempt", models.PositiveSmallIntegerField(default=0)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                (
                    "block",
                    models.PositiveSmallIntegerField(blank=True, help_text="Which secret block, from 1.", null=True),
                ),
                (
                    "closes_at",
                    models.DateTimeField(blank=True, help_text="When a secret block is trained on.", null=True),
                ),
                (
                    "requested",
                    models.PositiveIntegerField(help_text="Questions wanted; of a secret block, records in the pool."),
                ),
                ("selected", models.PositiveIntegerField(blank=True, null=True)),
                ("progress_done", models.PositiveIntegerField(db_default=0)),
                ("progress_total", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "message",
                    privacy.message_fields.MessageField(
                        blank=True, default=str, help_text="What the attempt does now."
                    ),
                ),
                ("error", privacy.message_fields.MessageField(blank=True, default=str)),
                ("started_at", models.DateTimeField(blank=True, help_text="When the newest attempt began.", null=True)),
                (
                    "cancelled_by",
                    models.CharField(blank=True, db_default="", help_text="Who asked it to stop.", max_length=150),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "committed_entry",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.ledgerentry",
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rounds",
                        to="learner.modelrelease",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="rounds", to="annotation.project"
                    ),
                ),
                (
                    "reservation",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.ledgerentry",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "number"), name="learner_round_number"),
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ("waiting", "running"))),
                        fields=("project",),
                        name="learner_round_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "done"), _negated=True),
                            models.Q(("committed_entry__isnull", False), ("selected__lte", models.F("requested"))),
                            _connector="OR",
                        ),
                        name="learner_round_done",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "failed"), _negated=True),
                        fields=("project", "block"),
                        name="learner_round_block_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("block__gte", 1),
                                ("block__isnull", False),
                                models.Q(
                                    models.Q(("state", "done"), _negated=True),
                                    ("closes_at__isnull", False),
                                    _connector="OR",
                                ),
                            ),
                            models.Q(("block", None), ("closes_at", None)),
                            _connector="OR",
                        ),
                        name="learner_round_block_secret",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SecretDraw",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("blocks", models.BinaryField(help_text="One byte for each row: its block from 1, or 0.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secret_draws",
                        to="annotation.dataset",
                    ),
                ),
                ("first_row", models.BigIntegerField(default=0)),
            ],
            options={
                "constraints": (
                    models.UniqueConstraint(fields=("dataset", "first_row"), name="learner_coins_one_a_part"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("first_row__gte", 0),
                            django.db.models.lookups.Exact(
                                django.db.models.functions.math.Mod(models.F("first_row"), models.Value(1048576)), 0
                            ),
                            django.db.models.lookups.LessThanOrEqual(
                                models.Func(
                                    models.F("blocks"),
                                    function="octet_length",
                                    output_field=models.IntegerField(),
                                ),
                                1048576,
                            ),
                        ),
                        name="learner_coins_part_within",
                    ),
                ),
            },
        ),
        migrations.CreateModel(
            name="Stream",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "attempt",
                    models.PositiveSmallIntegerField(default=1, help_text="Which attempt to pay for the stream."),
                ),
                ("next_slot", models.BigIntegerField(default=0)),
                ("batches_closed", models.PositiveIntegerField(default=0)),
                (
                    "open_slots",
                    models.JSONField(default=list, help_text="Selected slots of the batch that is still open."),
                ),
                ("batches_used", models.PositiveIntegerField(default=0, help_text="Batches that made their update.")),
                (
                    "batches_released",
                    models.PositiveIntegerField(default=0, help_text="Batches the newest release learned from."),
                ),
                ("learner_state", models.JSONField(blank=True, help_text="Weights after the last update.", null=True)),
                (
                    "entry",
                    models.OneToOneField(
                        blank=True,
                        help_text="The committed entry that pays for all of it; nothing is examined before there is one.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.ledgerentry",
                    ),
                ),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="stream", to="annotation.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("batches_released__lte", models.F("batches_used")),
                            ("batches_used__lte", models.F("batches_closed")),
                        ),
                        name="learner_stream_in_order",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("entry__isnull", False),
                            models.Q(("batches_closed", 0), ("learner_state", None), ("next_slot", 0)),
                            _connector="OR",
                        ),
                        name="learner_stream_paid",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="StreamBatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("end", models.BigIntegerField(help_text="The first slot after it.")),
                (
                    "questions",
                    models.PositiveIntegerField(help_text="Records selected; secret where windows are hidden."),
                ),
                ("closes_at", models.DateTimeField(help_text="When its update is made, whatever is answered.")),
                (
                    "stream",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="batches",
                        to="learner.stream",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "stream batches",
                "constraints": [models.UniqueConstraint(fields=("stream", "number"), name="learner_stream_batch_once")],
            },
        ),
        migrations.CreateModel(
            name="TrainingRun",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField(help_text="Version the release will carry.")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempt", models.PositiveSmallIntegerField(default=0)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                (
                    "stream_batches",
                    models.PositiveIntegerField(
                        blank=True, help_text="Batches of a stream behind the version; null in a pool.", null=True
                    ),
                ),
                ("last_consensus_id", models.BigIntegerField(help_text="Labels up to this consensus are used.")),
                ("labels_used", models.PositiveIntegerField()),
                (
                    "unagreed",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Questions given up without an agreed answer before it began.",
                    ),
                ),
                ("progress_done", models.PositiveIntegerField(db_default=0)),
                ("progress_total", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "message",
                    privacy.message_fields.MessageField(
                        blank=True, default=str, help_text="What the attempt does now."
                    ),
                ),
                ("error", privacy.message_fields.MessageField(blank=True, default=str)),
                ("started_at", models.DateTimeField(blank=True, help_text="When the newest attempt began.", null=True)),
                (
                    "cancelled_by",
                    models.CharField(blank=True, db_default="", help_text="Who asked it to stop.", max_length=150),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "block",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="training_runs",
                        to="learner.round",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="training_runs",
                        to="annotation.project",
                    ),
                ),
                (
                    "reservation",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.ledgerentry",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ("waiting", "running"))),
                        fields=("project",),
                        name="learner_training_one_open",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "failed"), _negated=True),
                        fields=("project", "version"),
                        name="learner_training_version",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="modelrelease",
            name="training_run",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="release", to="learner.trainingrun"
            ),
        ),
        migrations.CreateModel(
            name="WarmStart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("weights", models.JSONField(help_text="Coefficients, as in weights.json.")),
                ("features_version", models.CharField(max_length=120)),
                (
                    "examples",
                    models.PositiveIntegerField(help_text="Of private ones the slots, whose number is public."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "dataset",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="warm_start", to="annotation.dataset"
                    ),
                ),
                (
                    "entry",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.ledgerentry",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FeatureMatrix",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.CharField(max_length=120)),
                ("file", models.FileField(max_length=300, upload_to="")),
                ("sha256", models.CharField(max_length=64)),
                ("rows", models.BigIntegerField()),
                ("dimension", models.PositiveIntegerField()),
                (
                    "emptied",
                    models.BigIntegerField(default=0, help_text="Rows that are zero because their slots are empty."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="feature_matrices",
                        to="annotation.dataset",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "feature matrices",
                "constraints": [
                    models.UniqueConstraint(fields=("dataset", "version"), name="learner_matrix_one_per_version")
                ],
            },
        ),
        migrations.CreateModel(
            name="Evaluation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("examples", models.PositiveIntegerField()),
                ("correct", models.PositiveIntegerField()),
                (
                    "constant_correct",
                    models.PositiveIntegerField(
                        default=0, help_text="How often the likeliest class alone would have been right."
                    ),
                ),
                (
                    "described_correct",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="How often the words about the classes alone would have been right.",
                        null=True,
                    ),
                ),
                ("measures", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="evaluations", to="annotation.dataset"
                    ),
                ),
                (
                    "release",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="evaluations",
                        to="learner.modelrelease",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("release", "dataset"), name="learner_evaluation_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("constant_correct__lte", models.F("examples")),
                            ("correct__lte", models.F("examples")),
                            ("examples__gte", 1),
                            models.Q(
                                ("described_correct", None),
                                ("described_correct__lte", models.F("examples")),
                                _connector="OR",
                            ),
                        ),
                        name="learner_evaluation_counts",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Endorsement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reason", models.CharField(max_length=300)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "endorsed_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "release",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="endorsement",
                        to="learner.modelrelease",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True), name="learner_endorsement_has_reason"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ChannelMove",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("channel", models.CharField(max_length=30)),
                ("reason", models.CharField(max_length=300)),
                (
                    "rolled_back",
                    models.BooleanField(default=False, help_text="Back to an earlier version, which the program says."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "moved_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="channel_moves",
                        to="annotation.project",
                    ),
                ),
                (
                    "release",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="learner.modelrelease"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "channel", "id"], name="learner_channel_newest")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True), name="learner_channel_has_reason"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("channel__regex", "^[a-z][a-z-]{1,29}$"),
                            models.Q(("channel__in", ["latest", "main"]), _negated=True),
                        ),
                        name="learner_channel_name",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PrintedLimit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("epsilon_limit_nano", models.BigIntegerField()),
                ("delta_limit_atto", models.BigIntegerField()),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="privacy.budgetaccount"
                    ),
                ),
                (
                    "release",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="printed_limits",
                        to="learner.modelrelease",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("release", "account"), name="learner_printed_limit_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="ReleasedSums",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "shape",
                    models.CharField(help_text="Digest of features, classes and the constant column.", max_length=64),
                ),
                (
                    "moments",
                    models.BinaryField(help_text="Numbers of eight bytes, row by row; none for class sums.", null=True),
                ),
                ("class_sums", models.BinaryField()),
                ("dimension", models.PositiveIntegerField()),
                ("moment_variance", models.FloatField()),
                ("class_variance", models.FloatField()),
                (
                    "entry",
                    models.OneToOneField(
                        help_text="What paid for the newest block of them.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.ledgerentry",
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sums", to="learner.trainingrun"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "released sums",
            },
        ),
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
        migrations.CreateModel(
            name="SharesReport",
            fields=[
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempt", models.PositiveSmallIntegerField(default=0)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("error", privacy.message_fields.MessageField(blank=True, default=str)),
                ("started_at", models.DateTimeField(blank=True, help_text="When the newest attempt began.", null=True)),
                (
                    "cancelled_by",
                    models.CharField(blank=True, db_default="", help_text="Who asked it to stop.", max_length=150),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("classes", models.JSONField(help_text="Names, as they were learned.")),
                (
                    "grouping",
                    models.CharField(
                        choices=[
                            ("whole", "the whole pool"),
                            ("upload", "by upload"),
                            ("month", "by month of the upload"),
                            ("column", "by a declared column"),
                            ("confidence", "right answers, to abstain below a threshold"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "column",
                    models.CharField(
                        blank=True, help_text="Declared column whose categories are groups.", max_length=200
                    ),
                ),
                ("groups", models.JSONField(help_text="Name and uploads of each group; no record is in two.")),
                ("rate", models.FloatField(help_text="Public rate of the secret block.")),
                (
                    "accuracy",
                    models.FloatField(help_text="Public guess of the model's; empty for labels alone.", null=True),
                ),
                (
                    "events",
                    models.JSONField(help_text="Events of counts on the sample and, with a model, over the pool."),
                ),
                ("counts", models.JSONField(blank=True, help_text="Noisy counts of each event.", null=True)),
                ("asked_by", models.CharField(max_length=150)),
                (
                    "block",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="learner.round"
                    ),
                ),
                (
                    "committed_entry",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.ledgerentry",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shares_reports",
                        to="annotation.project",
                    ),
                ),
                (
                    "release",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="learner.modelrelease",
                    ),
                ),
                (
                    "reservation",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.ledgerentry",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "number"), name="learner_shares_number"),
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ("waiting", "running"))),
                        fields=("project",),
                        name="learner_shares_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("grouping", "column"), ("column", ""), _connector="XOR"),
                        name="learner_shares_column",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("grouping", "confidence"), _negated=True),
                            ("release__isnull", False),
                            _connector="OR",
                        ),
                        name="learner_shares_of_a_release",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("committed_entry__isnull", False), ("counts__isnull", False), ("state", "done")),
                            models.Q(
                                models.Q(("state", "done"), _negated=True), ("committed_entry", None), ("counts", None)
                            ),
                            _connector="OR",
                        ),
                        name="learner_shares_paid",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            "\n".join((SQL / f"{name}.sql").read_text() for name in RULES),
            reverse_sql=(SQL / "rules.reverse.sql").read_text(),
        ),
    ]
