"""Projects, records, questions and labels: their tables and the rules that only triggers can keep."""

import uuid
from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import privacy.message_fields
from privacy.first_migration import FirstMigration

SQL = Path(__file__).parent / "sql"
# In this order: a rule may call what an earlier file defines.
RULES = (
    "storage",
    "oracle_rules",
    "stream_rules",
    "annotators_page",
    "hidden_checks",
    "history",
    "guarantee_last",
    "emptying",
    "asked_records",
    "click",
    "pictures",
    "retention",
    "tombstones",
    "second_manager",
    "kinds",
    "groups",
    "kinds_and_groups",
    "reviewers",
    "record_dataset",
    "strangers",
    "configurations",
    "project_rules",
    "answers_account",
    "appointed_managers",
    "populations",
    "pools",
    "registered_tables",
    "classes",
    "class_sets",
    "span_sets",
    "suggestions",
    "conversation",
    "search_paths",
)


class Migration(FirstMigration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("privacy", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RateCount",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("tries", models.PositiveIntegerField()),
                (
                    "next_at",
                    models.DateTimeField(help_text="Of guesses at a password: when the next one is taken.", null=True),
                ),
                ("ends_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="PlatformKeys",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "platform",
                    models.CharField(
                        choices=[("prolific", "Prolific"), ("mturk", "Mechanical Turk")], max_length=10, unique=True
                    ),
                ),
                ("keys", models.JSONField(default=list)),
                ("fetched_at", models.DateTimeField(blank=True, null=True)),
                ("asked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "is_wanted",
                    models.BooleanField(default=False, help_text="Whether a key was named that is not among them."),
                ),
            ],
            options={"verbose_name_plural": "platform keys"},
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("scopes", models.JSONField(default=list)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Configuration",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField()),
                ("schema_version", models.PositiveSmallIntegerField(default=1)),
                ("document", models.JSONField(help_text="By section: settings and their values.")),
                ("digest", models.CharField(help_text="SHA-256 of the document as canonical JSON.", max_length=64)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("digest__regex", "^[0-9a-f]{64}$"), ("schema_version__gte", 1), ("version__gte", 1)
                        ),
                        name="annotation_configuration_shape",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="OutgoingKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sealed", models.BinaryField()),
                ("ends_at", models.DateTimeField(help_text="Set once another key took its place.", null=True)),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="IdempotentAnswer",
            fields=[
                ("key", models.BinaryField(max_length=32, primary_key=True, serialize=False)),
                ("request_digest", models.BinaryField(max_length=32)),
                ("status", models.PositiveSmallIntegerField()),
                ("body", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(db_index=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=30)),
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
                ("progress_done", models.BigIntegerField(default=0)),
                ("progress_total", models.BigIntegerField(blank=True, null=True)),
                ("message", privacy.message_fields.MessageField(blank=True, default=str)),
                ("error", privacy.message_fields.MessageField(blank=True, default=str)),
                ("attempt", models.PositiveSmallIntegerField(default=0)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("started_at", models.DateTimeField(blank=True, help_text="When the newest attempt began.", null=True)),
                (
                    "cancelled_by",
                    models.CharField(blank=True, db_default="", help_text="Who asked it to stop.", max_length=150),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ("done", "failed")), _negated=True),
                        fields=["leased_until"],
                        name="annotation_job_open",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("progress_done__gte", 0)), name="annotation_job_progress"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ("done", "failed")), ("finished_at", None), _connector="XOR"),
                        name="annotation_job_finished",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Dataset",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("pool", "private pool"),
                            ("public_test", "public test set"),
                            ("public_start", "public examples that start the first model"),
                            ("charged_start", "private examples that start the first model"),
                        ],
                        default="pool",
                        max_length=13,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("receiving", "receiving"), ("ready", "ready"), ("refused", "refused")],
                        default="receiving",
                        max_length=10,
                    ),
                ),
                (
                    "bad_rows",
                    models.CharField(
                        choices=[
                            ("keep_good", "keep the good rows, list the bad ones"),
                            ("refuse_all", "refuse the whole upload if any row is bad"),
                        ],
                        default="keep_good",
                        max_length=12,
                    ),
                ),
                (
                    "upload",
                    models.FileField(
                        blank=True, help_text="The file as sent; empty once it was read.", max_length=300, upload_to=""
                    ),
                ),
                ("mapping", models.JSONField(default=dict, help_text="Which column holds text, contributor, label.")),
                (
                    "in_columns",
                    models.BooleanField(
                        default=False,
                        help_text="Its rows lie in storage as columns (`PoolPart`) and not in the database.",
                    ),
                ),
                (
                    "pixels",
                    models.FileField(
                        blank=True,
                        help_text="uint8 .npy of shape (rows, height, width), in colour (..., 3).",
                        max_length=300,
                        upload_to="",
                    ),
                ),
                ("pixels_sha256", models.CharField(blank=True, max_length=64)),
                ("row_count", models.BigIntegerField(default=0)),
                ("bad_row_count", models.BigIntegerField(default=0)),
                (
                    "bad_row_report",
                    privacy.message_fields.MessagesInField(
                        default=list,
                        help_text="First bad rows: line, column, reason; never content.",
                        inside="$[*].reason",
                    ),
                ),
                (
                    "upload_digest",
                    models.CharField(
                        blank=True,
                        help_text="Of the bytes of its file, keyed: tells a file that comes twice.",
                        max_length=64,
                    ),
                ),
                (
                    "uploader_reason",
                    privacy.message_fields.MessageField(
                        blank=True, default=str, help_text="Why it was refused, for who uploaded it alone."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "account",
                    models.OneToOneField(
                        blank=True,
                        help_text="Of private examples that start the first model: what they pay from.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="started_by",
                        to="privacy.budgetaccount",
                    ),
                ),
                (
                    "uploaded_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "gate_job",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="gated_dataset",
                        to="annotation.job",
                    ),
                ),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="dataset", to="annotation.job"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("role", "charged_start"), ("account", None), _connector="XOR"),
                        name="annotation_dataset_account",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="KnownChoice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=20)),
                ("name", models.CharField(max_length=40)),
                ("section", models.CharField(max_length=20)),
                ("key", models.CharField(blank=True, help_text="Setting that names the chosen one.", max_length=30)),
                (
                    "oracles",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=10), size=None),
                ),
                (
                    "arrivals",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=10), size=None),
                ),
                (
                    "data_kinds",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=10), size=None),
                ),
                (
                    "parameters",
                    models.JSONField(
                        help_text="By name: the JSON schema of its value, whether a charge rests on it, and which other bounds it."
                    ),
                ),
                ("stays", models.BooleanField(help_text="Whether its parameters stay after the first charge.")),
                (
                    "facts",
                    models.JSONField(help_text="By name: what else the rules between several settings ask of it."),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("kind", "name"), name="annotation_known_choice")],
            },
        ),
        migrations.CreateModel(
            name="Project",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=60, unique=True)),
                ("name", models.CharField(max_length=120)),
                ("question", models.CharField(help_text="The one sentence annotators answer.", max_length=200)),
                ("guidelines", models.TextField(blank=True)),
                ("preset", models.CharField(max_length=40)),
                (
                    "oracle",
                    models.CharField(
                        choices=[
                            ("trusted", "trusted: annotators see the records"),
                            ("crowd", "crowd: annotators see only what passed the gate"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "arrival",
                    models.CharField(
                        choices=[
                            ("pool", "pool: uploads, asked in rounds"),
                            ("stream", "stream: records posted one by one, each examined once"),
                        ],
                        default="pool",
                        max_length=10,
                    ),
                ),
                (
                    "data_kind",
                    models.CharField(
                        choices=[("text", "text"), ("table", "table of declared columns"), ("image", "image")],
                        max_length=10,
                    ),
                ),
                ("classes", models.JSONField(help_text="Names of the classes, in the order they are shown.")),
                (
                    "merged_classes",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Classes that count as another one, with that one and since when.",
                    ),
                ),
                (
                    "renamed_classes",
                    models.JSONField(
                        blank=True, default=dict, help_text="Earlier names of classes, each with the one it has now."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("active", "active"),
                            ("paused", "paused"),
                            ("archived", "archived"),
                            ("deleted", "deleted"),
                        ],
                        default="active",
                        max_length=10,
                    ),
                ),
                (
                    "privacy_unit",
                    models.CharField(
                        choices=[("record", "one record"), ("contributor", "everything of one contributor")],
                        max_length=12,
                    ),
                ),
                (
                    "columns",
                    models.JSONField(blank=True, default=list, help_text="Declared columns with bounds or categories."),
                ),
                ("image_height", models.PositiveIntegerField(blank=True, null=True)),
                ("image_width", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "labels_used_through",
                    models.BigIntegerField(
                        default=0, help_text="Consensuses up to this id were given to a training; they never change."
                    ),
                ),
                (
                    "labels_used_at",
                    models.DateTimeField(
                        blank=True, help_text="When the newest training took what was settled by then.", null=True
                    ),
                ),
                ("guidelines_version", models.PositiveIntegerField(default=1)),
                (
                    "second_manager",
                    models.BooleanField(
                        default=False, help_text="A higher limit of an account needs the approval of a second manager."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "configuration",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="annotation.configuration"
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "labels_account",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.budgetaccount",
                    ),
                ),
                (
                    "pool_account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="privacy.budgetaccount"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("annotator", "annotator"),
                            ("manager", "manager"),
                            ("engineer", "engineer"),
                            ("reviewer", "reviewer"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "guidelines_seen",
                    models.PositiveIntegerField(
                        blank=True, help_text="Version the person knows; null before the first question.", null=True
                    ),
                ),
                ("paused_at", models.DateTimeField(blank=True, null=True)),
                (
                    "pause_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("checks", "answers to questions with known answers"),
                            ("manager", "a manager's decision"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "judged_from",
                    models.DateTimeField(blank=True, help_text="Earlier checks no longer count.", null=True),
                ),
                (
                    "is_direct",
                    models.BooleanField(
                        db_default=True, default=True, help_text="Given to this person; else only groups give it."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="memberships", to="annotation.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "user", "role"), name="annotation_membership_once"),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ("annotator", "manager", "engineer", "reviewer"))),
                        name="annotation_membership_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LimitRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("limit", "a higher limit"),
                            ("alone", "one manager deciding alone"),
                            ("manager", "a further manager"),
                        ],
                        max_length=7,
                    ),
                ),
                ("epsilon_limit_nano", models.BigIntegerField(blank=True, null=True)),
                ("delta_limit_atto", models.BigIntegerField(blank=True, null=True)),
                ("reason", models.CharField(max_length=300)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("approved", "approved"),
                            ("refused", "refused"),
                            ("withdrawn", "withdrawn"),
                            ("expired", "expired"),
                        ],
                        default="open",
                        max_length=9,
                    ),
                ),
                ("requested_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "used_at",
                    models.DateTimeField(blank=True, help_text="When the change it allows was made.", null=True),
                ),
                (
                    "account",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="privacy.budgetaccount",
                    ),
                ),
                (
                    "appointee",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="limit_requests",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("account__isnull", False),
                                ("appointee", None),
                                ("delta_limit_atto__isnull", False),
                                ("epsilon_limit_nano__isnull", False),
                                ("kind", "limit"),
                            ),
                            models.Q(
                                ("account", None),
                                ("appointee", None),
                                ("delta_limit_atto", None),
                                ("epsilon_limit_nano", None),
                                ("kind", "alone"),
                                ("project__isnull", False),
                            ),
                            models.Q(
                                models.Q(("appointee", models.F("requested_by")), _negated=True),
                                models.Q(
                                    models.Q(("account__isnull", False), ("project", None)),
                                    models.Q(("account", None), ("project__isnull", False)),
                                    _connector="OR",
                                ),
                                ("appointee__isnull", False),
                                ("delta_limit_atto", None),
                                ("epsilon_limit_nano", None),
                                ("kind", "manager"),
                            ),
                            _connector="OR",
                        ),
                        name="annotation_limitrequest_shape",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True), name="annotation_limitrequest_reason"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at", None), ("decided_by", None), ("state", "open")),
                            models.Q(("decided_at__isnull", False), ("decided_by", None), ("state", "expired")),
                            models.Q(
                                ("decided_at__isnull", False),
                                ("decided_by", models.F("requested_by")),
                                ("state", "withdrawn"),
                            ),
                            models.Q(
                                models.Q(("decided_by", models.F("requested_by")), _negated=True),
                                ("decided_at__isnull", False),
                                ("decided_by__isnull", False),
                                ("state__in", ("approved", "refused")),
                            ),
                            _connector="OR",
                        ),
                        name="annotation_limitrequest_second_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "approved"), _negated=True),
                            ("decided_at__lte", models.F("expires_at")),
                            _connector="OR",
                        ),
                        name="annotation_limitrequest_in_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("used_at", None), ("state", "approved"), _connector="OR"),
                        name="annotation_limitrequest_used",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "limit"), ("state", "open")),
                        fields=("account",),
                        name="annotation_limitrequest_one_open",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "alone"), ("state", "open")),
                        fields=("project",),
                        name="annotation_limitrequest_one_alone",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "manager"), ("state", "open")),
                        fields=("project", "account", "appointee"),
                        name="annotation_limitrequest_one_person",
                        nulls_distinct=False,
                    ),
                ],
            },
        ),
        migrations.AddField(
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
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("role", models.CharField(max_length=10)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("note", models.CharField(blank=True, max_length=80)),
                ("maximum_uses", models.PositiveIntegerField(default=1)),
                ("uses", models.PositiveIntegerField(default=0)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("uses__lte", models.F("maximum_uses"))), name="annotation_invitation_uses"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Guidelines",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("text", models.TextField(blank=True)),
                ("examples", models.JSONField(default=list, help_text="Objects with text, choice and reason.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="guideline_versions",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "guidelines",
                "constraints": [
                    models.UniqueConstraint(fields=("project", "version"), name="annotation_guidelines_version")
                ],
            },
        ),
        migrations.CreateModel(
            name="GuidelinePicture",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(help_text="SHA-256 of the file, in hexadecimal digits.", max_length=64)),
                (
                    "description",
                    models.CharField(help_text="What is to be seen, for who cannot see it.", max_length=300),
                ),
                ("width", models.PositiveSmallIntegerField()),
                ("height", models.PositiveSmallIntegerField()),
                ("added_at", models.DateTimeField(auto_now_add=True)),
                (
                    "added_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="guideline_pictures",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "digest"), name="annotation_guidelinepicture_once"),
                    models.CheckConstraint(
                        condition=models.Q(("description", ""), _negated=True),
                        name="annotation_guidelinepicture_described",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GroupRole",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("role", models.CharField(max_length=10)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "group",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="roles",
                        to="auth.group",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="group_roles", to="annotation.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("group", "project", "role"), name="annotation_grouprole_once"),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ("annotator", "manager", "engineer", "reviewer"))),
                        name="annotation_grouprole_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GateRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("committed", "committed"),
                            ("lost", "lost: the attempt crashed and stays charged"),
                        ],
                        default="running",
                        max_length=10,
                    ),
                ),
                ("passed_count", models.BigIntegerField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
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
                    "dataset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="gate_runs", to="annotation.dataset"
                    ),
                ),
                (
                    "reservation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="privacy.ledgerentry"
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="gate_runs", to="annotation.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "committed")),
                        fields=("dataset",),
                        name="annotation_gate_once_per_dataset",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("committed_entry__isnull", False),
                                ("passed_count__gte", 0),
                                ("passed_count__isnull", False),
                                ("state", "committed"),
                            ),
                            models.Q(
                                models.Q(("state", "committed"), _negated=True),
                                ("committed_entry", None),
                                ("passed_count", None),
                            ),
                            _connector="OR",
                        ),
                        name="annotation_gate_committed",
                    ),
                ],
            },
        ),
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
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="forgetting", to="annotation.job"
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="forgettings",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "id"], name="annotation_forgetting_project")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("contributor__isnull", False), ("finished_at", None)),
                            models.Q(("contributor", None), ("finished_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="annotation_forgetting_forgets",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("finished_at", None)),
                        fields=("project", "reference"),
                        name="annotation_forgetting_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Encounter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("contributor", models.BinaryField(max_length=16)),
                (
                    "annotator",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "annotator", "contributor"), name="annotation_encounter_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Deletion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "keep_releases",
                    models.BooleanField(help_text="Whether released models stay, or only that they were released."),
                ),
                ("actor", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="deletion", to="annotation.job"
                    ),
                ),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="deletion", to="annotation.project"
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="dataset",
            name="project",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="datasets", to="annotation.project"
            ),
        ),
        migrations.CreateModel(
            name="CrowdLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                (
                    "platform",
                    models.CharField(choices=[("prolific", "Prolific"), ("mturk", "Mechanical Turk")], max_length=10),
                ),
                (
                    "study",
                    models.CharField(
                        blank=True, help_text="Study or HIT the link is for; empty allows any.", max_length=64
                    ),
                ),
                ("answers_wanted", models.PositiveIntegerField()),
                ("completion_code", models.CharField(max_length=40)),
                ("maximum_participants", models.PositiveIntegerField()),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "signed",
                    models.BooleanField(default=False, help_text="Whether the platform must sign who it sends."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="crowd_links", to="annotation.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("answers_wanted__gte", 1)), name="annotation_crowdlink_wanted"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("signed", False), ("platform", "prolific"), _connector="OR"),
                        name="annotation_crowdlink_signed",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="configuration",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="configurations",
                to="annotation.project",
            ),
        ),
        migrations.CreateModel(
            name="Assignment",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("leased", "leased"),
                            ("labelled", "labelled"),
                            ("skipped", "skipped"),
                            ("expired", "expired"),
                        ],
                        default="leased",
                        max_length=10,
                    ),
                ),
                ("leased_until", models.DateTimeField()),
                ("skip_reason", models.CharField(blank=True, max_length=200)),
                ("place", models.PositiveSmallIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="assignments", to="annotation.project"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "labelled")),
                        fields=["annotator", "project", "finished_at"],
                        name="annotation_assignment_done",
                    ),
                    models.Index(
                        condition=models.Q(("state", "skipped")),
                        fields=["annotator", "project", "finished_at"],
                        name="annotation_assignment_skipped",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "leased")),
                        fields=("annotator", "project", "place"),
                        name="annotation_assignment_one_lease",
                    ),
                    models.CheckConstraint(condition=models.Q(("place__lte", 50)), name="annotation_assignment_places"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Action",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("actor", models.CharField(max_length=150)),
                ("route", models.CharField(help_text="Name of the page or API route.", max_length=80)),
                ("target", models.JSONField(default=dict, help_text="Numbers of what it was done to.")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="actions",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "id"], name="annotation_action_project")],
            },
        ),
        migrations.CreateModel(
            name="ProjectChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "actor",
                    models.CharField(
                        blank=True, help_text="Name as it was; empty where no page did it.", max_length=150
                    ),
                ),
                ("fields", models.JSONField(help_text="By field: the value before and the value after.")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="changes",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "id"], name="annotation_change_project")],
            },
        ),
        migrations.CreateModel(
            name="QualityReport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "method",
                    models.CharField(
                        choices=[
                            ("majority", "majority: every answer counts the same"),
                            ("dawid_skene", "Dawid-Skene: learns which classes each person mixes up"),
                            ("mace", "MACE: learns who guesses"),
                        ],
                        max_length=12,
                    ),
                ),
                ("answers", models.PositiveIntegerField(default=0)),
                ("questions", models.PositiveIntegerField(default=0)),
                (
                    "alpha",
                    models.FloatField(
                        blank=True, help_text="Krippendorff's alpha; empty where nothing overlaps.", null=True
                    ),
                ),
                (
                    "skills",
                    models.JSONField(default=dict, help_text="By person: share of answers equal to the model's."),
                ),
                ("made_at", models.DateTimeField(blank=True, null=True)),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="annotation.job"
                    ),
                ),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="quality_report",
                        to="annotation.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Query",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.TextField(blank=True, null=True)),
                ("sample_count", models.BigIntegerField(blank=True, null=True)),
                (
                    "noisy_count",
                    models.FloatField(blank=True, help_text="What the threshold gate hands out instead.", null=True),
                ),
                (
                    "suggested",
                    models.PositiveIntegerField(
                        blank=True, help_text="What a released model took it for when it was opened.", null=True
                    ),
                ),
                (
                    "suggested_percent",
                    models.PositiveSmallIntegerField(
                        blank=True, help_text="How sure the model was of that.", null=True
                    ),
                ),
                (
                    "suggestion_shown",
                    models.BooleanField(
                        blank=True, help_text="Whether annotators see it; a share of questions goes without.", null=True
                    ),
                ),
                (
                    "guess",
                    models.PositiveSmallIntegerField(
                        blank=True, help_text="The class the annotator is asked to confirm.", null=True
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("unasked", "may be asked"),
                            ("open", "being asked"),
                            ("gold", "hidden check with a known answer"),
                            ("closed", "answered"),
                            ("disputed", "answered without a majority"),
                            ("withdrawn", "not agreed on when its block closed"),
                            ("set_aside", "set aside for a manager"),
                            ("in_review", "agreed on, drawn for a reviewer"),
                        ],
                        max_length=10,
                    ),
                ),
                ("round_number", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "opened_at",
                    models.DateTimeField(blank=True, help_text="When it was last opened to annotators.", null=True),
                ),
                ("priority", models.BigIntegerField(default=0, help_text="Smaller is asked first.")),
                ("overlap", models.PositiveSmallIntegerField(default=1)),
                ("open_slots", models.SmallIntegerField(default=0)),
                (
                    "drawn_for_review",
                    models.BooleanField(
                        db_default=False,
                        help_text="A coin drew it when it was opened: what is agreed on waits for a reviewer.",
                    ),
                ),
                (
                    "emptied",
                    models.BooleanField(
                        db_default=False,
                        help_text="What was answered is erased; the question counts as one with an empty slot.",
                    ),
                ),
                (
                    "gate_run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queries",
                        to="annotation.gaterun",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="queries",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "queries",
                "indexes": [
                    models.Index(
                        condition=models.Q(("open_slots__gt", 0), ("state", "open")),
                        fields=["project", "priority", "id"],
                        name="annotation_query_queue",
                    ),
                    models.Index(fields=["project", "state"], name="annotation_query_state"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("suggested", None), ("suggested_percent", None), ("suggestion_shown", None)),
                            models.Q(
                                ("suggested__isnull", False),
                                ("suggested_percent__lte", 100),
                                ("suggestion_shown__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="annotation_query_suggestion_whole",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("open_slots__gte", 0), ("open_slots__lte", models.F("overlap"))),
                        name="annotation_query_overlap",
                    ),
                    models.UniqueConstraint(
                        models.F("project"),
                        django.db.models.functions.text.MD5("text"),
                        name="annotation_query_text_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state", "unasked"), ("round_number__isnull", False), _connector="XOR"),
                        name="annotation_query_asked_in_round",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Opinion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("choice", models.PositiveBigIntegerField()),
                ("probability", models.FloatField()),
                (
                    "report",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="opinions",
                        to="annotation.qualityreport",
                    ),
                ),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="annotation.query"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("report", "query"), name="annotation_opinion_once"),
                    models.CheckConstraint(
                        condition=models.Q(("probability__gte", 0), ("probability__lte", 1)),
                        name="annotation_opinion_probability",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Label",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "choice",
                    models.PositiveBigIntegerField(
                        help_text="Position of the answer, or number of a set; null once the question was emptied.",
                        null=True,
                    ),
                ),
                (
                    "key",
                    models.UUIDField(
                        blank=True, help_text="Of the page that sent it, so that it is stored once.", null=True
                    ),
                ),
                ("superseded_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="labels", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "assignment",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="labels",
                        to="annotation.assignment",
                    ),
                ),
                (
                    "supersedes",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="superseded_by",
                        to="annotation.label",
                    ),
                ),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="labels", to="annotation.query"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("superseded_at", None)),
                        fields=("assignment",),
                        name="annotation_label_one_current",
                    ),
                    models.UniqueConstraint(fields=("assignment", "key"), name="annotation_label_key_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="GoldQuery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("choice", models.PositiveBigIntegerField()),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("public", "public example"),
                            ("asked", "question that was asked, paid for and settled before"),
                        ],
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
                (
                    "added_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "query",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="gold", to="annotation.query"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "gold queries",
            },
        ),
        migrations.CreateModel(
            name="Consensus",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("choice", models.PositiveBigIntegerField()),
                ("votes", models.PositiveSmallIntegerField()),
                ("agreeing", models.PositiveSmallIntegerField()),
                (
                    "changed",
                    models.BooleanField(
                        blank=True,
                        help_text="Whether a reviewer put another answer in the place of an agreed one.",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "settled_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="consensuses",
                        to="annotation.project",
                    ),
                ),
                (
                    "query",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="consensus", to="annotation.query"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "consensuses",
                "indexes": [models.Index(fields=["project", "id"], name="annotation_consensus_project")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("agreeing__lte", models.F("votes")),
                                models.Q(("agreeing__gte", 1), ("settled_by__isnull", False), _connector="OR"),
                            ),
                            models.Q(("agreeing", 0), ("choice", 0), ("settled_by", None), ("votes", 0)),
                            _connector="OR",
                        ),
                        name="annotation_consensus_majority",
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="assignment",
            name="query",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="assignments",
                to="annotation.query",
            ),
        ),
        migrations.CreateModel(
            name="Record",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("row_number", models.BigIntegerField()),
                ("text", models.TextField(blank=True, null=True)),
                ("payload", models.JSONField(blank=True, null=True)),
                ("contributor", models.BinaryField(blank=True, max_length=16, null=True)),
                (
                    "label",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="Known class of a public example, or number of its set of classes.",
                        null=True,
                    ),
                ),
                (
                    "metadata",
                    models.JSONField(
                        blank=True,
                        help_text="The owner's id and columns, for people alone: `id` and pairs in `columns`.",
                        null=True,
                    ),
                ),
                (
                    "emptied",
                    models.BooleanField(
                        db_default=False,
                        help_text="Its content is erased; the slot stays, as the empty one of the guarantee.",
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="records",
                        to="annotation.dataset",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("dataset", "row_number"), name="annotation_record_row"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("emptied", False),
                            models.Q(
                                models.Q(("text", None), ("text", ""), _connector="OR"),
                                ("contributor", None),
                                ("label", None),
                                ("metadata", None),
                                ("payload", None),
                            ),
                            _connector="OR",
                        ),
                        name="annotation_record_emptied",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="query",
            name="record",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="query",
                to="annotation.record",
            ),
        ),
        migrations.CreateModel(
            name="Picture",
            fields=[
                (
                    "record",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="picture",
                        serialize=False,
                        to="annotation.record",
                    ),
                ),
                ("width", models.PositiveSmallIntegerField()),
                ("height", models.PositiveSmallIntegerField()),
                ("content", models.BinaryField(help_text="WebP without metadata, at most a mebibyte.")),
            ],
            options={
                "constraints": (
                    models.CheckConstraint(
                        condition=models.Q(("height__range", (1, 2048)), ("width__range", (1, 2048))),
                        name="annotation_picture_sides",
                    ),
                ),
            },
        ),
        migrations.CreateModel(
            name="RecordPost",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.BinaryField(help_text="Digest of the sender's idempotency key.", max_length=32)),
                (
                    "body_digest",
                    models.BinaryField(help_text="Keyed digest, so records cannot be guessed.", max_length=32),
                ),
                ("first_slot", models.BigIntegerField()),
                ("record_count", models.PositiveIntegerField()),
                (
                    "body",
                    models.BinaryField(blank=True, help_text="The records as JSON; null once examined.", null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="record_posts",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("body__isnull", False)),
                        fields=["project", "first_slot"],
                        name="annotation_post_waiting",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "key"), name="annotation_post_once"),
                    models.UniqueConstraint(fields=("project", "first_slot"), name="annotation_post_slot"),
                    models.CheckConstraint(
                        condition=models.Q(("record_count__gte", 1)), name="annotation_post_not_empty"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("broken", "broken"),
                            ("sensitive", "sensitive"),
                            ("comment", "comment"),
                            ("returned", "sent back"),
                        ],
                        max_length=10,
                    ),
                ),
                ("comment", models.CharField(blank=True, max_length=1000)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("resolved_at", models.DateTimeField(blank=True, null=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reports",
                        to="annotation.project",
                    ),
                ),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="reports", to="annotation.query"
                    ),
                ),
                (
                    "resolved_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("reply", models.CharField(blank=True, help_text="By the manager who settled it.", max_length=1000)),
                (
                    "read_at",
                    models.DateTimeField(blank=True, help_text="When the annotator read the reply.", null=True),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("resolved_at", None)),
                        fields=["project", "id"],
                        name="annotation_report_open",
                    ),
                    models.Index(
                        condition=models.Q(models.Q(("reply", ""), _negated=True), ("read_at", None)),
                        fields=["annotator", "project"],
                        name="annotation_report_unread",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("resolved_at", None)),
                        fields=("query", "annotator", "kind"),
                        name="annotation_report_flag_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("read_at", None), ("reply", "")),
                            models.Q(models.Q(("kind", "returned"), _negated=True), ("resolved_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="annotation_report_reply_settles",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("resolved_at", None), ("resolved_by", None)),
                            models.Q(("resolved_at__isnull", False), ("resolved_by__isnull", False)),
                            _connector="OR",
                        ),
                        name="annotation_report_resolved",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("comment", ""), ("kind__in", ("comment", "returned")), _negated=True),
                        name="annotation_report_comment_says_something",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Retention",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("records_days", models.PositiveIntegerField(blank=True, help_text="From the upload on.", null=True)),
                (
                    "answers_days",
                    models.PositiveIntegerField(blank=True, help_text="From the last answer on.", null=True),
                ),
                (
                    "comments_days",
                    models.PositiveIntegerField(
                        blank=True, default=365, help_text="From when they are settled.", null=True
                    ),
                ),
                (
                    "uploads_days",
                    models.PositiveIntegerField(blank=True, default=90, help_text="From the upload on.", null=True),
                ),
                (
                    "actions_days",
                    models.PositiveIntegerField(
                        blank=True, default=1095, help_text="From the action on, at least 90.", null=True
                    ),
                ),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="retention", to="annotation.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("records_days", None), ("records_days__gte", 1), _connector="OR"),
                            models.Q(("answers_days", None), ("answers_days__gte", 1), _connector="OR"),
                            models.Q(("comments_days", None), ("comments_days__gte", 1), _connector="OR"),
                            models.Q(("uploads_days", None), ("uploads_days__gte", 1), _connector="OR"),
                        ),
                        name="annotation_retention_days",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("actions_days", None), ("actions_days__gte", 90), _connector="OR"),
                        name="annotation_retention_actions",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ProjectMove",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="move",
                        serialize=False,
                        to="annotation.project",
                    ),
                ),
                ("moved_at", models.DateTimeField(null=True)),
                ("told_at", models.DateTimeField(null=True)),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="DueLook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("due_at", models.DateTimeField()),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="annotation.project"
                    ),
                ),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="SlotMark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("slots", models.BigIntegerField()),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="slot_marks",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("project", "day"), name="annotation_slotmark_once")],
            },
        ),
        migrations.CreateModel(
            name="Survey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("normalizer", models.CharField(max_length=4)),
                ("frequencies", models.JSONField(blank=True, null=True)),
                (
                    "dataset",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="survey", to="annotation.dataset"
                    ),
                ),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="survey", to="annotation.job"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="UploadDraft",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("upload", models.FileField(max_length=300, upload_to="")),
                ("name", models.CharField(max_length=200)),
                ("role", models.CharField(max_length=13)),
                ("bad_rows", models.CharField(max_length=12)),
                ("start_epsilon", models.FloatField(blank=True, null=True)),
                ("mapping", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="upload_drafts",
                        to="annotation.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="OpeningDraft",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("preset", models.CharField(max_length=40)),
                ("typed", models.JSONField(default=dict)),
                ("pool", models.FileField(blank=True, max_length=300, upload_to="")),
                ("public", models.FileField(blank=True, max_length=300, upload_to="")),
                (
                    "files",
                    models.JSONField(
                        default=dict, help_text="Of each file its name, how it is written, and its columns."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="CrowdParticipant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("pid_digest", models.BinaryField(max_length=16)),
                ("completed_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "link",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="participants",
                        to="annotation.crowdlink",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="crowd_participations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("link", "pid_digest"), name="annotation_participant_once_per_link")
                ],
            },
        ),
        migrations.CreateModel(
            name="PoolPart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("first_row", models.BigIntegerField(help_text="Rows of the upload in all parts before it.")),
                ("row_count", models.PositiveIntegerField()),
                ("emptied_count", models.PositiveIntegerField(default=0, help_text="Rows of it that are empty slots.")),
                ("named", models.BooleanField(help_text="A row of it names a contributor, by pseudonym.")),
                ("file", models.CharField(max_length=300)),
                ("sha256", models.CharField(max_length=64)),
                (
                    "dataset",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pool_parts",
                        to="annotation.dataset",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("dataset", "number"), name="annotation_poolpart_once"),
                    models.UniqueConstraint(fields=("file",), name="annotation_poolpart_file"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("emptied_count__lte", models.F("row_count")),
                            ("first_row__gte", 0),
                            ("row_count__gte", 1),
                            models.Q(("named", False), ("emptied_count__lt", models.F("row_count")), _connector="OR"),
                        ),
                        name="annotation_poolpart_rows",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("sha256__regex", "^[0-9a-f]{64}$")), name="annotation_poolpart_digest"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PoolSource",
            fields=[
                (
                    "dataset",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="source",
                        serialize=False,
                        to="annotation.dataset",
                    ),
                ),
                ("address", models.CharField(max_length=1000)),
                (
                    "secret",
                    models.BinaryField(help_text="Keys the snapshot's id, and is shown to nobody.", max_length=32),
                ),
                ("snapshot", models.CharField(blank=True, max_length=64)),
                (
                    "format_snapshot",
                    models.JSONField(
                        help_text="Of a format with snapshots: the one that was asked for; then also its table and the ids of columns.",
                        null=True,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("address__regex", "^(file:///|s3://[^/])")),
                        name="annotation_poolsource_address",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("snapshot__regex", "^([0-9a-f]{64})?$")),
                        name="annotation_poolsource_digest",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SourceFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                (
                    "name",
                    models.CharField(
                        blank=True, help_text="Below the address; empty where that is the file.", max_length=1000
                    ),
                ),
                ("first_row", models.BigIntegerField(help_text="Rows of the table in all files before it.")),
                ("row_count", models.BigIntegerField()),
                (
                    "sha256",
                    models.CharField(
                        help_text="Of its name, size, version and footer, none of its pages.", max_length=64
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="annotation.poolsource",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("source", "number"), name="annotation_sourcefile_once"),
                    models.UniqueConstraint(fields=("source", "name"), name="annotation_sourcefile_name"),
                    models.CheckConstraint(
                        condition=models.Q(("first_row__gte", 0), ("row_count__gte", 0)),
                        name="annotation_sourcefile_rows",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("sha256__regex", "^[0-9a-f]{64}$")), name="annotation_sourcefile_digest"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ImportPart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("first", models.BigIntegerField(help_text="Byte, or row group of a Parquet file.")),
                ("stop", models.BigIntegerField()),
                (
                    "row_count",
                    models.BigIntegerField(help_text="Rows that can be used; null until they are counted.", null=True),
                ),
                ("line_count", models.BigIntegerField(null=True)),
                ("unpacked_bytes", models.BigIntegerField(default=0)),
                ("bad_row_count", models.BigIntegerField(default=0)),
                (
                    "bad_row_report",
                    privacy.message_fields.MessagesInField(
                        default=list,
                        help_text="Lines are counted from the beginning of the part.",
                        inside="$[*].reason",
                    ),
                ),
                (
                    "compared",
                    models.JSONField(default=list, help_text="Data of another role that its rows were compared with."),
                ),
                ("shared", models.BooleanField(default=False, help_text="A row of it stands in those data.")),
                (
                    "pool_files",
                    models.JSONField(
                        default=list,
                        help_text="Files that hold its rows: name, digest, rows, whether they name somebody.",
                    ),
                ),
                ("stored", models.BooleanField(default=False)),
                (
                    "odd",
                    models.BooleanField(
                        default=False, help_text="It cannot be read by itself; the file is read in one piece."
                    ),
                ),
                (
                    "dataset",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="import_parts",
                        to="annotation.dataset",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("dataset", "number"), name="annotation_import_part_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("line_count", None), ("row_count", None), ("stored", False)),
                            models.Q(("line_count__isnull", False), ("row_count__isnull", False)),
                            _connector="OR",
                        ),
                        name="annotation_import_part_counted",
                    ),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(("project__isnull", False), ("kind", "simulate"), _connector="OR"),
                name="annotation_job_project",
            ),
        ),
        migrations.AddConstraint(
            model_name="dataset",
            constraint=models.UniqueConstraint(
                condition=models.Q(("role", "charged_start"), models.Q(("state", "refused"), _negated=True)),
                fields=("project",),
                name="annotation_dataset_one_start",
            ),
        ),
        migrations.AddConstraint(
            model_name="configuration",
            constraint=models.UniqueConstraint(fields=("project", "version"), name="annotation_configuration_version"),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.UniqueConstraint(
                fields=("query", "annotator"), name="annotation_assignment_once_per_person"
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
                    models.Q(
                        ("gate_run", None),
                        ("guess", None),
                        ("noisy_count", None),
                        ("record", None),
                        ("sample_count", None),
                        ("state", "gold"),
                        ("text__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="annotation_query_one_source",
            ),
        ),
        migrations.CreateModel(
            name="BudgetManager",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("appointed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="managers",
                        to="privacy.budgetaccount",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("account", "user"), name="annotation_budgetmanager_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Machine",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="machine", to="annotation.project"
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="machine", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="query",
            name="assigned_to",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="Who is asked before anybody else; nobody once they were shown it.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddIndex(
            model_name="query",
            index=models.Index(
                condition=models.Q(("assigned_to__isnull", False)),
                fields=["assigned_to", "project", "priority", "id"],
                name="annotation_query_assigned_to",
            ),
        ),
        migrations.AddConstraint(
            model_name="query",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("emptied", False),
                    models.Q(("assigned_to", None), ("open_slots", 0), ("state", "withdrawn"), ("suggested", None)),
                    _connector="OR",
                ),
                name="annotation_query_emptied",
            ),
        ),
        migrations.AddConstraint(
            model_name="query",
            constraint=models.CheckConstraint(
                condition=models.Q(("assigned_to", None), ("record__isnull", False), _connector="OR"),
                name="annotation_query_assigned",
            ),
        ),
        migrations.CreateModel(
            name="Letter",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("address", models.EmailField(blank=True, max_length=254)),
                ("salt", models.BinaryField(blank=True, max_length=32, null=True)),
                ("language", models.CharField(max_length=5)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("sent", "sent"),
                            ("dropped", "not needed"),
                            ("given_up", "given up"),
                        ],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "invitation",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="letter",
                        to="annotation.invitation",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="letters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")), fields=["next_at"], name="annotation_letter_due"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("invitation", None), ("person__isnull", False)),
                            models.Q(("invitation__isnull", False), ("person", None)),
                            _connector="OR",
                        ),
                        name="annotation_letter_to_one",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("address", ""), ("salt", None)),
                            models.Q(
                                models.Q(("address", ""), _negated=True),
                                ("invitation__isnull", False),
                                ("salt__isnull", False),
                                ("state", "waiting"),
                            ),
                            _connector="OR",
                        ),
                        name="annotation_letter_keeps_no_secret",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("sent_at__isnull", False), ("state", "sent")),
                            models.Q(models.Q(("state", "sent"), _negated=True), ("sent_at", None)),
                            _connector="OR",
                        ),
                        name="annotation_letter_sent",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MailChoice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("language", models.CharField(max_length=5)),
                ("wanted", models.BooleanField(default=True)),
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mail_choice",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Export",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("format", models.CharField(help_text="How the file is written.", max_length=20)),
                (
                    "history",
                    models.BooleanField(default=False, help_text="Whether answers that were changed are in it, too."),
                ),
                ("file", models.CharField(blank=True, max_length=120)),
                ("sha256", models.CharField(blank=True, max_length=64)),
                ("size", models.BigIntegerField(blank=True, help_text="Bytes of the file.", null=True)),
                ("expires_at", models.DateTimeField(blank=True, help_text="When the file is removed.", null=True)),
                (
                    "is_void",
                    models.BooleanField(
                        default=False,
                        help_text="Records were erased since; the file is withheld.",
                    ),
                ),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="export", to="annotation.job"
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="exports", to="annotation.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("file", ""), ("sha256", ""), ("size", None)),
                            models.Q(
                                models.Q(("file", ""), _negated=True),
                                models.Q(("sha256", ""), _negated=True),
                                ("expires_at__isnull", False),
                                ("size__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="annotation_export_file",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("returned", "A manager asks me to look at an answer of mine again"),
                            ("remark", "Somebody writes to me about a question"),
                            ("questions", "New questions wait for me"),
                            ("review", "Answers wait for my review"),
                            ("waiting", "A project waits for a decision of mine"),
                            ("release", "A model is released"),
                            ("budget", "Four fifths of a budget are spent"),
                            ("export", "A file I asked for is there"),
                        ],
                        max_length=10,
                    ),
                ),
                ("subject", models.CharField(help_text="What it is about; the same is told once.", max_length=120)),
                ("facts", models.JSONField(default=dict)),
                (
                    "due_at",
                    models.DateTimeField(
                        blank=True, help_text="When a letter tells it; null once one does.", null=True
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "letter",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="notices",
                        to="annotation.letter",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="notices", to="annotation.project"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="annotation_notice_due"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("person", "project", "kind", "subject"), name="annotation_notice_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("due_at", None), ("letter", None), _connector="OR"),
                        name="annotation_notice_due_or_told",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Review",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("leased", "leased"),
                            ("settled", "decided"),
                            ("returned", "sent back"),
                            ("set_aside", "set aside"),
                            ("skipped", "skipped"),
                            ("ended", "ended without a decision"),
                        ],
                        default="leased",
                        max_length=9,
                    ),
                ),
                ("leased_until", models.DateTimeField()),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reviews",
                        to="annotation.project",
                    ),
                ),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="reviews", to="annotation.query"
                    ),
                ),
                (
                    "reviewer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "reviewer", "finished_at"], name="annotation_review_done")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "leased")), fields=("query",), name="annotation_review_one_reads"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "leased")),
                        fields=("reviewer", "project"),
                        name="annotation_review_one_lease",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state", "leased"), ("finished_at__isnull", False), _connector="XOR"),
                        name="annotation_review_finished",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SpanSet",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("spans", models.TextField(help_text="JSON in its canonical form: [[start, end, type], ...].")),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "number"), name="annotation_spanset_number"),
                    models.UniqueConstraint(
                        models.F("project"),
                        django.db.models.functions.text.MD5("spans"),
                        name="annotation_spanset_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 1), ("spans__startswith", "[[")),
                        name="annotation_spanset_says_something",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            "\n".join((SQL / f"{name}.sql").read_text() for name in RULES),
            reverse_sql=(SQL / "rules.reverse.sql").read_text(),
        ),
    ]
