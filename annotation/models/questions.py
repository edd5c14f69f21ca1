"""Questions, who holds them, what was answered and agreed on, and what people report."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import MD5
from django.utils.translation import gettext_lazy as _

from annotation.models.data import Record
from annotation.models.gates import GateRun
from annotation.models.numbered import NumberedModel
from annotation.models.projects import Project


class QueryState(models.TextChoices):
    UNASKED = "unasked", _("may be asked")
    OPEN = "open", _("being asked")
    GOLD = "gold", _("hidden check with a known answer")
    CLOSED = "closed", _("answered")
    DISPUTED = "disputed", _("answered without a majority")
    WITHDRAWN = "withdrawn", _("not agreed on when its block closed")
    SET_ASIDE = "set_aside", _("set aside for a manager")
    IN_REVIEW = "in_review", _("agreed on, drawn for a reviewer")


# All answers are in, whatever came of them.
ANSWERED = (QueryState.CLOSED, QueryState.DISPUTED, QueryState.IN_REVIEW)
# Those that somebody was asked: candidates were not, and hidden checks are on a page of their own.
ASKED = (QueryState.OPEN, *ANSWERED, QueryState.SET_ASIDE, QueryState.WITHDRAWN)
# So many more answers a question gets that is asked again: two, so that an odd number of answers stays odd.
FURTHER_ANSWERS = 2
GUIDELINE_FILES = "guidelines"


class Query(NumberedModel):
    """A question as an annotator sees it; in a crowd project gate output only, never a record."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="queries", db_index=False)
    record = models.OneToOneField(Record, models.PROTECT, null=True, blank=True, related_name="query")
    gate_run = models.ForeignKey(GateRun, models.PROTECT, null=True, blank=True, related_name="queries")
    text = models.TextField(null=True, blank=True)  # null says: look at the record
    sample_count = models.BigIntegerField(null=True, blank=True)
    noisy_count = models.FloatField(null=True, blank=True, help_text="What the threshold gate hands out instead.")
    guess = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="The class the annotator is asked to confirm."
    )
    state = models.CharField(max_length=10, choices=QueryState.choices)
    round_number = models.PositiveIntegerField(null=True, blank=True)
    opened_at = models.DateTimeField(null=True, blank=True, help_text="When it was last opened to annotators.")
    priority = models.BigIntegerField(default=0, help_text="Smaller is asked first.")
    overlap = models.PositiveSmallIntegerField(default=1)
    open_slots = models.SmallIntegerField(default=0)
    suggested = models.PositiveIntegerField(
        null=True, blank=True, help_text="What a released model took it for when it was opened."
    )
    suggested_percent = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="How sure the model was of that."
    )
    suggestion_shown = models.BooleanField(
        null=True, blank=True, help_text="Whether annotators see it; a share of questions goes without."
    )
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        help_text="Who is asked before anybody else; nobody once they were shown it.",
    )
    drawn_for_review = models.BooleanField(
        db_default=False, help_text="A coin drew it when it was opened: what is agreed on waits for a reviewer."
    )
    emptied = models.BooleanField(
        db_default=False, help_text="What was answered is erased; the question counts as one with an empty slot."
    )

    class Meta:
        verbose_name_plural = "queries"
        constraints = (
            models.CheckConstraint(
                name="annotation_query_emptied",
                condition=Q(emptied=False) | Q(state="withdrawn", open_slots=0, suggested=None, assigned_to=None),
            ),
            # What came through a gate goes to whoever comes.
            models.CheckConstraint(
                name="annotation_query_assigned", condition=Q(assigned_to=None) | Q(record__isnull=False)
            ),
            models.CheckConstraint(
                name="annotation_query_suggestion_whole",
                condition=Q(suggested=None, suggested_percent=None, suggestion_shown=None)
                | Q(suggested__isnull=False, suggested_percent__lte=100, suggestion_shown__isnull=False),
            ),
            models.CheckConstraint(
                name="annotation_query_overlap", condition=Q(open_slots__gte=0, open_slots__lte=F("overlap"))
            ),
            models.CheckConstraint(
                name="annotation_query_one_source",
                condition=Q(record__isnull=False, gate_run=None, text=None, sample_count=None, noisy_count=None)
                | Q(
                    Q(sample_count__isnull=False, sample_count__gte=2, noisy_count=None)
                    | Q(sample_count=None, noisy_count__isnull=False),
                    record=None,
                    gate_run__isnull=False,
                    text__isnull=False,
                    guess=None,
                )
                | Q(
                    state="gold",
                    record=None,
                    gate_run=None,
                    text__isnull=False,
                    sample_count=None,
                    noisy_count=None,
                    guess=None,
                ),
            ),
            # Over the digest, because an index entry holds at most 2,704 bytes and a text may be longer.
            models.UniqueConstraint(F("project"), MD5("text"), name="annotation_query_text_once"),
            models.CheckConstraint(
                name="annotation_query_asked_in_round", condition=Q(state="unasked") ^ Q(round_number__isnull=False)
            ),
        )
        indexes = (
            models.Index(
                fields=("project", "priority", "id"),
                condition=Q(state="open", open_slots__gt=0),
                name="annotation_query_queue",
            ),
            models.Index(fields=("project", "state"), name="annotation_query_state"),
            models.Index(
                fields=("assigned_to", "project", "priority", "id"),
                condition=Q(assigned_to__isnull=False),
                name="annotation_query_assigned_to",
            ),
        )


class AssignmentState(models.TextChoices):
    LEASED = "leased", _("leased")
    LABELLED = "labelled", _("labelled")
    SKIPPED = "skipped", _("skipped")
    EXPIRED = "expired", _("expired")


MOST_CLAIMED = 50


class Assignment(NumberedModel):
    """A lease of one question to one person; never the same question to the same person twice."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="assignments")
    query = models.ForeignKey(Query, models.CASCADE, related_name="assignments", db_index=False)
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="assignments")
    state = models.CharField(max_length=10, choices=AssignmentState.choices, default=AssignmentState.LEASED)
    leased_until = models.DateTimeField()
    skip_reason = models.CharField(max_length=200, blank=True)
    # 0 is the question that a page shows; a program holds a batch at the places from 1 on.
    place = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("query", "annotator"), name="annotation_assignment_once_per_person"),
            models.UniqueConstraint(
                fields=("annotator", "project", "place"),
                condition=Q(state="leased"),
                name="annotation_assignment_one_lease",
            ),
            models.CheckConstraint(condition=Q(place__lte=MOST_CLAIMED), name="annotation_assignment_places"),
        )
        indexes = (
            models.Index(
                fields=("annotator", "project", "finished_at"),
                condition=Q(state="labelled"),
                name="annotation_assignment_done",
            ),
            models.Index(
                fields=("annotator", "project", "finished_at"),
                condition=Q(state="skipped"),
                name="annotation_assignment_skipped",
            ),
        )


class Label(NumberedModel):
    """One answer; a changed mind adds a row and supersedes the old one."""

    assignment = models.ForeignKey(Assignment, models.PROTECT, related_name="labels", db_index=False)
    query = models.ForeignKey(Query, models.PROTECT, related_name="labels")
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="labels")
    choice = models.PositiveBigIntegerField(
        null=True, help_text="Position of the answer, or number of a set; null once the question was emptied."
    )
    key = models.UUIDField(null=True, blank=True, help_text="Of the page that sent it, so that it is stored once.")
    supersedes = models.OneToOneField("self", models.PROTECT, null=True, blank=True, related_name="superseded_by")
    superseded_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("assignment",), condition=Q(superseded_at=None), name="annotation_label_one_current"
            ),
            models.UniqueConstraint(fields=("assignment", "key"), name="annotation_label_key_once"),
        )


class SpanSet(NumberedModel):
    """Spans that answers mark; equal answers of a project have one number, and no spans have 0 without a row."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    number = models.PositiveIntegerField()
    spans = models.TextField(help_text="JSON in its canonical form: [[start, end, type], ...].")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "number"), name="annotation_spanset_number"),
            # Over the digest, because an index entry holds at most 2,704 bytes.
            models.UniqueConstraint(F("project"), MD5("spans"), name="annotation_spanset_once"),
            models.CheckConstraint(
                name="annotation_spanset_says_something", condition=Q(number__gte=1) & Q(spans__startswith="[[")
            ),
        )


class Consensus(NumberedModel):
    """Answer that the annotators of one question agree on; learning uses these and nothing else."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="consensuses", db_index=False)
    query = models.OneToOneField(Query, models.PROTECT, related_name="consensus")
    choice = models.PositiveBigIntegerField()
    votes = models.PositiveSmallIntegerField()
    agreeing = models.PositiveSmallIntegerField()
    settled_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True)
    changed = models.BooleanField(
        null=True, blank=True, help_text="Whether a reviewer put another answer in the place of an agreed one."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "consensuses"
        constraints = (
            models.CheckConstraint(
                name="annotation_consensus_majority",
                condition=Q(agreeing__lte=F("votes")) & (Q(agreeing__gte=1) | Q(settled_by__isnull=False))
                # Of an emptied question: it still counts, and says nothing.
                | Q(votes=0, agreeing=0, choice=0, settled_by=None),
            ),
        )
        indexes = (models.Index(fields=("project", "id"), name="annotation_consensus_project"),)


class Guidelines(NumberedModel):
    """One version of the guidelines; the examples are made up, never records."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="guideline_versions", db_index=False)
    version = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    examples = models.JSONField(default=list, help_text="Objects with text, choice and reason.")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "guidelines"
        constraints = (models.UniqueConstraint(fields=("project", "version"), name="annotation_guidelines_version"),)


class GuidelinePicture(NumberedModel):
    """A picture for the guidelines, never from a record; the file lies in the site's storage under its digest."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="guideline_pictures", db_index=False)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the file, in hexadecimal digits.")
    description = models.CharField(max_length=300, help_text="What is to be seen, for who cannot see it.")
    width = models.PositiveSmallIntegerField()
    height = models.PositiveSmallIntegerField()
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "digest"), name="annotation_guidelinepicture_once"),
            models.CheckConstraint(name="annotation_guidelinepicture_described", condition=~Q(description="")),
        )

    @property
    def file(self) -> str:
        return f"{GUIDELINE_FILES}/{self.project_id}/{self.digest}.webp"


class ReportKind(models.TextChoices):
    BROKEN = "broken", _("broken")
    SENSITIVE = "sensitive", _("sensitive")
    COMMENT = "comment", _("comment")
    # The other way: a manager asks whoever answered to look again.
    RETURNED = "returned", _("sent back")


# What a manager wrote and the annotator has not read, or not looked at again.
UNREAD_BY_ANNOTATOR = Q(kind=ReportKind.RETURNED, resolved_at=None) | (~Q(reply="") & Q(read_at=None))


class Report(NumberedModel):
    project = models.ForeignKey(Project, models.CASCADE, related_name="reports", db_index=False)
    query = models.ForeignKey(Query, models.CASCADE, related_name="reports")
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    kind = models.CharField(max_length=10, choices=ReportKind.choices)
    comment = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True)
    reply = models.CharField(max_length=1000, blank=True, help_text="By the manager who settled it.")
    read_at = models.DateTimeField(null=True, blank=True, help_text="When the annotator read the reply.")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("query", "annotator", "kind"), condition=Q(resolved_at=None), name="annotation_report_flag_once"
            ),
            models.CheckConstraint(
                name="annotation_report_resolved",
                condition=Q(resolved_at=None, resolved_by=None)
                | Q(resolved_at__isnull=False, resolved_by__isnull=False),
            ),
            models.CheckConstraint(
                name="annotation_report_comment_says_something",
                condition=~Q(kind__in=("comment", "returned"), comment=""),
            ),
            models.CheckConstraint(
                name="annotation_report_reply_settles",
                condition=Q(reply="", read_at=None) | (~Q(kind="returned") & Q(resolved_at__isnull=False)),
            ),
        )
        indexes = (
            models.Index(fields=("project", "id"), condition=Q(resolved_at=None), name="annotation_report_open"),
            models.Index(
                fields=("annotator", "project"),
                condition=~Q(reply="") & Q(read_at=None),
                name="annotation_report_unread",
            ),
        )

    @property
    def is_unread(self) -> bool:
        if self.kind == ReportKind.RETURNED:
            return self.resolved_at is None
        return bool(self.reply) and self.read_at is None


class Encounter(NumberedModel):
    """A contributor whose records a person was shown, noted where a project limits them."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False)
    contributor = models.BinaryField(max_length=16)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("project", "annotator", "contributor"), name="annotation_encounter_once"),
        )
