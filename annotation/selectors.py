"""Selectors of projects and of what a person may see of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db import connection
from django.db.models import Exists, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from annotation.models import (
    Assignment,
    AssignmentState,
    DataKind,
    Label,
    Membership,
    Oracle,
    Project,
    ProjectState,
    Query,
    QueryState,
    Record,
    Report,
    ReportKind,
    Role,
)
from annotation.models.database import Columns
from annotation.models.joining import CrowdParticipant
from annotation.models.questions import ANSWERED, ASKED, UNREAD_BY_ANNOTATOR
from privacy.ledger.models import EntryKind, LedgerEntry

Person = AbstractBaseUser | AnonymousUser
UNDO_WINDOW = timedelta(minutes=10)
# Counting stops here: the page says "more than", and a queue of a million costs no more than one of a hundred.
WAITING_SHOWN = 100  # `annotation_claim` counts one more.
# A person's own pace is that of their answers in these last minutes, shown from so many answers on.
PACE_MINUTES = 10
PACE_FROM_ANSWERS = 5

# What `annotation_asked_record` tells: whose record it is and how it is labelled are nobody's business at the page.
ASKED_FIELDS = ("id", "dataset_id", "row_number", "text", "payload", "metadata")
RECORD = Columns(
    Record,
    "record",
    without=[each.attname for each in Record._meta.concrete_fields if each.attname not in ASKED_FIELDS],
)
ASKED_RECORDS = f"""
SELECT {RECORD.sql}
FROM unnest(%s::bigint[]) AS wanted (id) CROSS JOIN LATERAL annotation_asked_record(wanted.id) record
"""  # noqa: S608 - names of columns
ASKED_PICTURE = """
SELECT width, height, CASE WHEN octet_length(content) <= %s THEN content END FROM annotation_asked_picture(%s)
"""


class CountOf(Subquery):
    template = "(SELECT count(*) FROM (%(subquery)s) counted)"
    output_field = IntegerField()


def projects_of(user: Person, *, roles: Sequence[str] = ()) -> QuerySet[Project]:
    mine = Membership.objects.filter(project=OuterRef("pk"), user=user.pk)
    if roles:
        mine = mine.filter(role__in=roles)
    return Project.objects.filter(Exists(mine))


def seen_by(user: Person, projects: QuerySet[Project]) -> QuerySet[Project]:
    """Return projects that know whether the person manages them (`viewer_manages`), and so which ways lead on."""
    managing = Membership.objects.filter(project=OuterRef("pk"), user=user.pk, role=Role.MANAGER)
    return projects.annotate(viewer_manages=Exists(managing))  # type: ignore[no-redef]  # the model declares its type


def is_participant(user: Person) -> bool:
    return CrowdParticipant.objects.filter(user=user.pk).exists()


def may_take_role(user: Person, project: Project, role: str) -> bool:
    """Say whether a person may have a role: whom a platform sent is an annotator where its link leads, or nothing."""
    sent = CrowdParticipant.objects.filter(user=user.pk)
    at_home = role == Role.ANNOTATOR and project.oracle == Oracle.CROWD and sent.filter(link__project=project).exists()
    return at_home or not sent.exists()


def is_participant_alone(user: Person) -> bool:
    """Say whether a crowd platform sent this person, and they are nothing else here than what its link made them."""
    by_link = CrowdParticipant.objects.filter(user=user.pk, link__project=OuterRef("project"))
    at_home = Exists(by_link) & Q(role=Role.ANNOTATOR, project__oracle=Oracle.CROWD)
    elsewhere = Membership.objects.filter(~at_home, user=user.pk)
    in_group = User.groups.through.objects.filter(user=user.pk)
    return is_participant(user) and not elsewhere.exists() and not in_group.exists()


def assignments_of(user: Person) -> QuerySet[Assignment]:
    return Assignment.objects.filter(
        annotator=user.pk,
        project__state__in=(ProjectState.ACTIVE, ProjectState.PAUSED),
        project__memberships__user=user.pk,
        project__memberships__role=Role.ANNOTATOR,
    ).select_related("project")


def site_midnight() -> datetime:
    """Return when today began by the site's time zone, whatever clock the viewer says they have."""
    here = timezone.localtime(timezone=timezone.get_default_timezone())
    return here.replace(hour=0, minute=0, second=0, microsecond=0)


def midnight() -> datetime:
    return timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)


def asked_records(ids: Iterable[int]) -> dict[int, Record]:
    """Return records that somebody was asked about, without contributor and label; also for the label pages' role."""
    with connection.cursor() as cursor:
        cursor.execute(ASKED_RECORDS, [list(ids)])
        found = [RECORD.build(iter(row)) for row in cursor.fetchall()]
    return {record.pk: record for record in found if record is not None}


@dataclass(frozen=True, slots=True)
class AskedPicture:
    """The picture of a record; its content is empty where it is larger than was asked for."""

    width: int
    height: int
    content: bytes


def asked_picture(record: Record, *, most_bytes: int = 2**31 - 1) -> AskedPicture | None:
    with connection.cursor() as cursor:
        cursor.execute(ASKED_PICTURE, [most_bytes, record.pk])
        row = cursor.fetchone()
    return None if row is None else AskedPicture(row[0], row[1], bytes(row[2] or b""))


def desks_of(user: Person) -> QuerySet[Project]:
    """Return the person's projects with what their label page shows around the question, in one statement."""
    annotator = Membership.objects.filter(project=OuterRef("pk"), user=user.pk, role=Role.ANNOTATOR)
    undoable = undoable_assignments(user).filter(project=OuterRef("pk"), labels__superseded_at=None)
    skipped = undoable_skips(user).filter(project=OuterRef("pk"))
    done = Assignment.objects.filter(
        annotator=user.pk, project=OuterRef("pk"), state=AssignmentState.LABELLED, finished_at__gte=midnight()
    )
    returned = Report.objects.filter(project=OuterRef("pk"), annotator=user.pk).filter(UNREAD_BY_ANNOTATOR)
    return projects_of(user).annotate(
        sent_back=CountOf(returned.values("pk")),
        is_annotator=Exists(annotator),
        last_choice=Subquery(undoable.values("labels__choice")[:1]),
        answered_at=Subquery(undoable.values("finished_at")[:1]),
        last_skip=Subquery(skipped.values("skip_reason")[:1]),
        skipped_at=Subquery(skipped.values("finished_at")[:1]),
        done_today=CountOf(done.values("pk")),
    )


def undoable_assignments(user: Person) -> QuerySet[Assignment]:
    """Return the person's answered assignments of the last minutes that no training has used, newest first."""
    settled = Q(query__state__in=ANSWERED, project__labels_used_at__isnull=False)
    given = Assignment.objects.filter(query=OuterRef("query"), state=AssignmentState.LABELLED)
    since = Exists(given.filter(finished_at__gt=OuterRef("project__labels_used_at")))
    used = Q(query__consensus__pk__lte=F("project__labels_used_through")) | settled & ~since
    answered = Assignment.objects.filter(
        annotator=user.pk, state=AssignmentState.LABELLED, finished_at__gte=Now() - UNDO_WINDOW
    )
    # Answers of one transaction have one time: a fixed order then, which a random key is not.
    return answered.exclude(used).exclude(query__state=QueryState.WITHDRAWN).order_by("-finished_at", "-query_id")


def correctable_assignments(user_id: int | None) -> QuerySet[Assignment]:
    """Return a person's answered assignments whose answer they may still change, however old, newest first.

    An answer from before the newest training stays, whatever it was to: a hidden check is used by no training, and
    would be told from other questions by staying open. Nor may it show that a manager decided a question, because then
    the answers differed: such an answer may be changed like any other, and the decision stands.
    """
    unused = Q(project__labels_used_at=None) | Q(finished_at__gt=F("project__labels_used_at"))
    return (
        given_answers(user_id)
        .filter(unused)
        .exclude(query__consensus__pk__lte=F("project__labels_used_through"))
        .order_by("-finished_at", "-query_id")
    )


def given_answers(user_id: int | None) -> QuerySet[Assignment]:
    answered = Assignment.objects.filter(annotator=user_id, state=AssignmentState.LABELLED, query__emptied=False)
    return answered.exclude(query__state=QueryState.SET_ASIDE)


def settled_for_good(project: Project) -> QuerySet[Query]:
    if project.labels_used_at is None:
        return Query.objects.none()
    given = Assignment.objects.filter(query=OuterRef("pk"), state=AssignmentState.LABELLED)
    since = Exists(given.filter(finished_at__gt=project.labels_used_at))
    settled = Query.objects.filter(project=project, state__in=ANSWERED)
    return settled.filter(Q(consensus__pk__lte=project.labels_used_through) | ~since)


def undoable_skips(user: Person) -> QuerySet[Assignment]:
    skipped = Assignment.objects.filter(
        annotator=user.pk, state=AssignmentState.SKIPPED, finished_at__gte=Now() - UNDO_WINDOW
    )
    free = Q(query__state__in=(QueryState.OPEN, QueryState.GOLD), query__open_slots__gt=0)
    others = Report.objects.filter(query=OuterRef("query"), kind=ReportKind.SENSITIVE, resolved_at=None)
    waits = Q(query__state=QueryState.SET_ASIDE) & ~Exists(others.exclude(annotator=user.pk))
    return skipped.filter(free | waits).order_by("-finished_at", "-query_id")


def earlier_choice(assignment: Assignment) -> int | None:
    taken_back = Label.objects.filter(assignment=assignment).order_by("-pk")
    return taken_back.values_list("choice", flat=True).first()


@dataclass(frozen=True, slots=True)
class Question:
    """A question as an annotator sees it: one of text, fields and image, by the project's kind of data."""

    text: str | None = None
    fields: Mapping[str, Any] | None = None
    image_url: str | None = None
    # The owner's, beside the record: never behind a gate, where a question has no record.
    owner_id: str | None = None
    metadata: Mapping[str, str | None] | None = None


def guess_of(assignment: Assignment) -> str | None:
    guess = assignment.query.guess
    return None if guess is None else str(assignment.project.classes[guess])


def question_of(assignment: Assignment) -> Question:
    """Return what the assignment shows; load it with `query__record`, else each part is a query of its own."""
    is_image = assignment.project.data_kind == DataKind.IMAGE
    image_url = reverse("annotation:question_image", args=(assignment.pk,)) if is_image else ""
    return shown_of(assignment.project, assignment.query, image_url=image_url)


def shown_of(project: Project, query: Query, *, image_url: str) -> Question:
    # A question that came through the gate has no record to look at, whatever the project says.
    if query.record is None:
        return Question(text=query.text)
    kept = query.record.metadata or {}
    beside: dict[str, Any] = {"owner_id": kept.get("id"), "metadata": dict(kept["columns"]) if kept else None}
    if project.data_kind == DataKind.IMAGE:
        return Question(image_url=image_url, **beside)
    if project.data_kind == DataKind.TABLE:
        payload = query.record.payload or {}
        return Question(fields={column["name"]: payload.get(column["name"]) for column in project.columns}, **beside)
    return Question(text=query.record.text, **beside)


def asked_questions(project: Project) -> QuerySet[Query]:
    return Query.objects.filter(project=project, state__in=ASKED)


# Those `annotation_project_under_guarantee` and `annotation_project_kind_fixed` keep.
FIXED = (
    "oracle",
    "arrival",
    "privacy_unit",
    "data_kind",
    "classes",
    "columns",
    "image_height",
    "image_width",
    "feature_dimension",
    "features",
)


def is_charged(project: Project) -> bool:
    accounts = [account for account in (project.pool_account_id, project.labels_account_id) if account]
    return LedgerEntry.objects.filter(account__in=accounts, kind=EntryKind.RESERVE).exists()


def fixed_settings(project: Project) -> list[tuple[str, Any]]:
    found = [(name, getattr(project, name)) for name in FIXED]
    return [(name, value) for name, value in found if value not in (None, [], "")]
