"""Uploads, their records, and records posted one by one."""

from collections.abc import Sequence

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotation.models.jobs import Job
from annotation.models.numbered import NumberedModel
from annotation.models.projects import Project
from privacy.accounting.cost import Cost
from privacy.message_fields import MessageField, MessagesInField


class DatasetRole(models.TextChoices):
    """Purpose of a dataset; `charged_start` is private and has an account of its own."""

    POOL = "pool", _("private pool")
    PUBLIC_TEST = "public_test", _("public test set")
    PUBLIC_START = "public_start", _("public examples that start the first model")
    CHARGED_START = "charged_start", _("private examples that start the first model")


class DatasetState(models.TextChoices):
    """State of an upload; only `ready` rows take part in anything."""

    RECEIVING = "receiving", _("receiving")
    READY = "ready", _("ready")
    REFUSED = "refused", _("refused")


class BadRows(models.TextChoices):
    KEEP_GOOD = "keep_good", _("keep the good rows, list the bad ones")
    REFUSE_ALL = "refuse_all", _("refuse the whole upload if any row is bad")


class Dataset(models.Model):
    """One upload; in a crowd project one gate epoch."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="datasets")
    job = models.OneToOneField(Job, models.PROTECT, related_name="dataset")
    gate_job = models.OneToOneField(Job, models.PROTECT, related_name="gated_dataset", null=True, blank=True)
    name = models.CharField(max_length=200)
    role = models.CharField(max_length=13, choices=DatasetRole.choices, default=DatasetRole.POOL)
    state = models.CharField(max_length=10, choices=DatasetState.choices, default=DatasetState.RECEIVING)
    bad_rows = models.CharField(max_length=12, choices=BadRows.choices, default=BadRows.KEEP_GOOD)
    upload = models.FileField(max_length=300, blank=True, help_text="The file as sent; empty once it was read.")
    mapping = models.JSONField(default=dict, help_text="Which column holds text, contributor, label.")
    pixels = models.FileField(
        max_length=300, blank=True, help_text="uint8 .npy of shape (rows, height, width), in colour (..., 3)."
    )
    pixels_sha256 = models.CharField(max_length=64, blank=True)
    in_columns = models.BooleanField(
        default=False, help_text="Its rows lie in storage as columns (`PoolPart`) and not in the database."
    )
    row_count = models.BigIntegerField(default=0)
    bad_row_count = models.BigIntegerField(default=0)
    bad_row_report = MessagesInField(
        default=list, inside="$[*].reason", help_text="First bad rows: line, column, reason; never content."
    )
    upload_digest = models.CharField(
        max_length=64, blank=True, help_text="Of the bytes of its file, keyed: tells a file that comes twice."
    )
    uploader_reason = MessageField(blank=True, help_text="Why it was refused, for who uploaded it alone.")
    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True)
    account = models.OneToOneField(
        "privacy.BudgetAccount",
        models.PROTECT,
        related_name="started_by",
        null=True,
        blank=True,
        help_text="Of private examples that start the first model: what they pay from.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    # What another run of its gate is charged, where a page asks for it.
    again: Cost | None = None
    again_agreed = ""
    # Whether an earlier upload of the project has the same bytes, where a page says so.
    repeats = False
    # Other projects with the same file as a pool, where a page says so.
    elsewhere: Sequence[Project] = ()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("project",),
                condition=Q(role="charged_start") & ~Q(state="refused"),
                name="annotation_dataset_one_start",
            ),
            models.CheckConstraint(
                name="annotation_dataset_account", condition=Q(role="charged_start") ^ Q(account=None)
            ),
        )

    @property
    def counted_rows(self) -> int | None:
        refused = self.state == DatasetState.REFUSED and getattr(self, "source", None) is not None
        return None if refused or self.state == DatasetState.RECEIVING else self.row_count

    def __str__(self) -> str:
        return self.name


class Record(NumberedModel):
    """One row of a dataset; `row_number` is its row in the feature and pixel files."""

    # No index of its own, here and below, where another one begins with the column: each slows every write down.
    # Triggers hold the reference, once a statement: row by row it was half the time of an import.
    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="records", db_index=False, db_constraint=False)
    row_number = models.BigIntegerField()
    text = models.TextField(null=True, blank=True)  # null says: this record is no text
    payload = models.JSONField(null=True, blank=True)
    contributor = models.BinaryField(max_length=16, null=True, blank=True)
    label = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="Known class of a public example, or number of its set of classes."
    )
    metadata = models.JSONField(
        null=True, blank=True, help_text="The owner's id and columns, for people alone: `id` and pairs in `columns`."
    )
    emptied = models.BooleanField(
        db_default=False, help_text="Its content is erased; the slot stays, as the empty one of the guarantee."
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("dataset", "row_number"), name="annotation_record_row"),
            models.CheckConstraint(
                name="annotation_record_emptied",
                condition=Q(emptied=False)
                | Q(Q(text=None) | Q(text=""), payload=None, contributor=None, label=None, metadata=None),
            ),
        )


class Picture(NumberedModel):
    """Colour picture of a record for trusted annotators; triggers refuse it behind a gate, and every change."""

    record = models.OneToOneField(Record, models.CASCADE, primary_key=True, related_name="picture")
    width = models.PositiveSmallIntegerField()
    height = models.PositiveSmallIntegerField()
    content = models.BinaryField(help_text="WebP without metadata, at most a mebibyte.")

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="annotation_picture_sides", condition=Q(width__range=(1, 2048), height__range=(1, 2048))
            ),
        )


class RecordPost(NumberedModel):
    """Records posted to a stream, until they are examined; a record's slot is its row number."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="record_posts", db_index=False)
    key = models.BinaryField(max_length=32, help_text="Digest of the sender's idempotency key.")
    body_digest = models.BinaryField(max_length=32, help_text="Keyed digest, so records cannot be guessed.")
    first_slot = models.BigIntegerField()
    record_count = models.PositiveIntegerField()
    body = models.BinaryField(null=True, blank=True, help_text="The records as JSON; null once examined.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "key"), name="annotation_post_once"),
            models.UniqueConstraint(fields=("project", "first_slot"), name="annotation_post_slot"),
            models.CheckConstraint(name="annotation_post_not_empty", condition=Q(record_count__gte=1)),
        )
        indexes = (
            models.Index(
                fields=("project", "first_slot"), condition=Q(body__isnull=False), name="annotation_post_waiting"
            ),
        )
