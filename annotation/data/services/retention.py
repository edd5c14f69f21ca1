"""Retention: records and files that are kept no longer than a project says."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import (
    DateTimeField,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Value,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Now
from django.utils import timezone

from annotation.data.services import datasets, forgetting, pool_files, uploads
from annotation.models import (
    Arrival,
    Assignment,
    Dataset,
    DatasetRole,
    DatasetState,
    Oracle,
    PoolPart,
    Project,
    Query,
    QueryState,
    Record,
    Report,
)
from annotation.models.exports import Export
from annotation.models.history import Action, ProjectChange
from annotation.models.imports import OpeningDraft, UploadDraft
from annotation.models.retention import Retention, SlotMark
from annotation.work.services import files

# Longer than the slowest request that brings a file.
UNOWNED_AFTER = timedelta(hours=6)


def forget_unowned_files(*, older_than: timedelta = UNOWNED_AFTER) -> int:
    """Delete files no upload knows, whose receiver died before it was stored; return how many."""
    owned = {name for pair in Dataset.objects.values_list("upload", "pixels").iterator() for name in pair if name}
    owned |= set(UploadDraft.objects.values_list("upload", flat=True))
    owned |= {name for pair in OpeningDraft.objects.values_list("pool", "public") for name in pair}
    owned |= pool_files.known_files()
    deleted = 0
    for name in _kept_files():
        if name in owned or timezone.now() - default_storage.get_modified_time(name) < older_than:
            continue
        # Its upload may have been stored since the others were listed.
        stored = Dataset.objects.filter(Q(upload=name) | Q(pixels=name)).exists() or pool_files.is_known(name)
        stored |= UploadDraft.objects.filter(upload=name).exists()
        if not stored and not OpeningDraft.objects.filter(Q(pool=name) | Q(public=name)).exists():
            default_storage.delete(name)
            deleted += 1
    return deleted


def _kept_files() -> Iterator[str]:
    for name in files.names_in(uploads.FOLDER):
        _, folder, file = name.rsplit("/", 2)
        if folder == uploads.DRAFTS or file.startswith(("upload", "pixels-", pool_files.PREFIX)):
            yield name


PRIVATE = (DatasetRole.POOL, DatasetRole.CHARGED_START)
FINISHED = (QueryState.CLOSED, QueryState.WITHDRAWN)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Due:
    """One kind: how long it is kept, how much of it is over that now, and when the next is."""

    kind: str
    days: int | None
    now: int
    following: datetime | None


def retention_of(project: Project) -> Retention:
    found, _made = Retention.objects.get_or_create(project=project)
    return found


def set_retention(*, project: Project, actor: str, **days: int | None) -> Retention:
    with transaction.atomic():
        current = Retention.objects.select_for_update().get(pk=retention_of(project).pk)
        changed = {name: [getattr(current, name), value] for name, value in days.items()}
        changed = {name: values for name, values in changed.items() if values[0] != values[1]}
        for name, values in changed.items():
            setattr(current, name, values[1])
        if changed:
            current.save(update_fields=list(changed))
            fields = {f"keep_{name}": values for name, values in changed.items()}
            ProjectChange.objects.create(project=project, actor=actor, fields=fields)
    return current


def what_is_due(project: Project) -> list[Due]:
    now = timezone.now()
    periods = retention_of(project)
    found = []
    for kind, rule in RULES.items():
        days: int | None = getattr(periods, f"{kind}_days")
        due = 0 if days is None else rule.overdue(project, now - days * DAY)
        # What is overdue goes within the hour, so the next is what comes after it.
        oldest = None if days is None else rule.oldest(project, now - days * DAY)
        found.append(Due(kind, days, due, None if oldest is None or days is None else oldest + days * DAY))
    return found


def due_projects() -> list[int]:
    """Return the projects that may hold what is over its period, or files an attempt left behind: two statements."""
    without = Project.objects.filter(retention=None)
    Retention.objects.bulk_create([Retention(project=project) for project in without], ignore_conflicts=True)
    of = {"project": OuterRef("pk")}
    over = {kind: OuterRef(f"{kind}_cutoff") for kind in RULES}
    skipped = Assignment.objects.filter(**of, finished_at__lt=over["comments"]).exclude(skip_reason="")
    unread = Dataset.objects.filter(**of, created_at__lt=over["uploads"]).exclude(state=DatasetState.RECEIVING)
    old = Dataset.objects.filter(**of, role__in=PRIVATE, created_at__lt=over["records"])
    due: list[QuerySet[Any]] = [
        old.filter(Q(records__emptied=False) | Q(pool_parts__emptied_count__lt=F("pool_parts__row_count"))),
        SlotMark.objects.filter(**of, day__lte=over["records"], slots__gt=0),
        Assignment.objects.filter(**of, finished_at__lt=over["answers"], query__emptied=False),
        Report.objects.filter(**of, resolved_at__lt=over["comments"]),
        skipped,
        unread.exclude(bad_row_report=[], upload=""),
        Action.objects.filter(**of, created_at__lt=over["actions"]),
    ]
    # What a killed attempt may have left in files.
    emptied: list[QuerySet[Any]] = [
        Dataset.objects.filter(**of, records__emptied=True),
        Dataset.objects.filter(**of, pool_parts__emptied_count__gt=0),
        Export.objects.filter(**of, is_void=True).exclude(file=""),
    ]
    unmarked = Q(arrival=Arrival.STREAM) & ~Exists(SlotMark.objects.filter(**of, day=timezone.now().date()))
    cutoffs = {f"{kind}_cutoff": _cutoff(f"retention__{kind}_days") for kind in RULES}
    projects = Project.objects.annotate(**cutoffs)
    wanted = reduce(or_, (Q(Exists(rows)) for rows in (*due, *emptied)), unmarked)
    return list(projects.filter(wanted).order_by("pk").values_list("pk", flat=True))


def _cutoff(days: str) -> Combinable:
    period = ExpressionWrapper(F(days) * Value(DAY), output_field=DurationField())
    return ExpressionWrapper(Now() - period, output_field=DateTimeField())


def erase_overdue(*, project: Project, now: datetime | None = None) -> Mapping[str, int]:
    """Erase what is over its period, each kind in a transaction of its own, and note how much it was."""
    now = now or timezone.now()
    periods = retention_of(project)
    if project.arrival == Arrival.STREAM:
        _mark_slots(project, now)
    gone: dict[str, int] = {}
    for kind, rule in RULES.items():
        days: int | None = getattr(periods, f"{kind}_days")
        if days is None:
            continue
        with transaction.atomic():
            Project.objects.select_for_update(no_key=True).get(pk=project.pk)
            if number := rule.erase(project, now - days * DAY):
                gone[kind] = number
                forgetting.delete_unused_spans(project)
                forgetting.void_exports(project)
    if gone:
        Action.objects.create(project=project, actor="", route="retention", target=gone)
    return gone


def _mark_slots(project: Project, now: datetime) -> None:
    slots = Dataset.objects.filter(project=project, role=DatasetRole.POOL).aggregate(n=Max("row_count"))["n"] or 0
    SlotMark.objects.get_or_create(project=project, day=now.date(), defaults={"slots": slots})


@dataclass(frozen=True, slots=True)
class Rule:
    rows: Callable[[Project], "QuerySet[Any]"]
    dated: str
    erase_old: Callable[[Project, "QuerySet[Any]", datetime], int]

    def old(self, project: Project, cutoff: datetime) -> "QuerySet[Any]":
        return self.rows(project).filter(**{f"{self.dated}__lt": cutoff})

    def overdue(self, project: Project, cutoff: datetime) -> int:
        return self.old(project, cutoff).count()

    def oldest(self, project: Project, cutoff: datetime) -> datetime | None:
        found: datetime | None = (
            self.rows(project).filter(**{f"{self.dated}__gte": cutoff}).aggregate(at=Min(self.dated))["at"]
        )
        return found

    def erase(self, project: Project, cutoff: datetime) -> int:
        return self.erase_old(project, self.old(project, cutoff), cutoff)


class RecordRule:
    """The rule of records: those of uploads have their upload's age, those of a stream the day they came."""

    def overdue(self, project: Project, cutoff: datetime) -> int:
        return self._records(project, cutoff).count() + pool_files.held_rows(self._parts(project, cutoff))

    def oldest(self, project: Project, cutoff: datetime) -> datetime | None:
        if project.arrival == Arrival.STREAM:
            mark = SlotMark.objects.filter(project=project, day__gt=cutoff.date(), slots__gt=0).order_by("day").first()
            start = timezone.get_default_timezone()
            return None if mark is None else datetime.combine(mark.day, datetime.min.time(), start)
        private = Dataset.objects.filter(project=project, role__in=PRIVATE, created_at__gte=cutoff)
        held = Q(records__emptied=False) | Q(pool_parts__emptied_count__lt=F("pool_parts__row_count"))
        found: datetime | None = private.filter(held).aggregate(at=Min("created_at"))["at"]
        return found

    def erase(self, project: Project, cutoff: datetime) -> int:
        in_columns = pool_files.empty_parts(self._parts(project, cutoff))
        return in_columns + forgetting.empty_records(self._records(project, cutoff), project=project).records

    def _records(self, project: Project, cutoff: datetime) -> QuerySet[Record]:
        private = Record.objects.filter(dataset__project=project, dataset__role__in=PRIVATE, emptied=False)
        if project.arrival != Arrival.STREAM:
            return private.filter(dataset__state=DatasetState.READY, dataset__created_at__lt=cutoff)
        mark = SlotMark.objects.filter(project=project, day__lte=cutoff.date()).order_by("-day").first()
        return private.filter(dataset__role=DatasetRole.POOL, row_number__lt=mark.slots if mark else 0)

    def _parts(self, project: Project, cutoff: datetime) -> QuerySet[PoolPart]:
        ready = PoolPart.objects.filter(dataset__project=project, dataset__state=DatasetState.READY)
        return ready.filter(dataset__created_at__lt=cutoff)


def _answered(project: Project) -> QuerySet[Query]:
    done = Assignment.objects.filter(query=OuterRef("pk"), finished_at__isnull=False)
    open_ones = Assignment.objects.filter(query=OuterRef("pk"), finished_at=None)
    # Strangers must not learn from what stays where others answered otherwise; experts have such a question to settle.
    finished = (*FINISHED, QueryState.DISPUTED) if project.oracle == Oracle.CROWD else FINISHED
    questions = Query.objects.filter(Exists(done), ~Exists(open_ones), project=project, state__in=finished)
    return questions.filter(emptied=False).annotate(last=Max("assignments__finished_at"))


def _empty_answers(project: Project, old: QuerySet[Query], cutoff: datetime) -> int:
    ids = list(old.values_list("pk", flat=True))
    if not ids:
        return 0
    behind = Record.objects.filter(query__in=ids, dataset__role=DatasetRole.POOL)
    forgetting.empty_records(behind, project=project)
    # In a crowd project no record hangs on a question; there its text was shown to many and stays.
    forgetting.empty_questions(Query.objects.filter(pk__in=ids), project=project)
    return len(ids)


def _delete_comments(project: Project, old: QuerySet[Report], cutoff: datetime) -> int:
    skipped = Assignment.objects.filter(project=project, finished_at__lt=cutoff).exclude(skip_reason="")
    skipped.update(skip_reason="")
    return old.delete()[0]


def _with_report(project: Project) -> QuerySet[Dataset]:
    read = Dataset.objects.filter(project=project).exclude(state=DatasetState.RECEIVING)
    return read.exclude(bad_row_report=[], upload="")


def _clear_uploads(project: Project, old: QuerySet[Dataset], cutoff: datetime) -> int:
    ids = list(old.values_list("pk", flat=True))
    for dataset_id in ids:
        datasets.forget_upload(dataset_id=dataset_id)
    return Dataset.objects.filter(pk__in=ids).update(bad_row_report=[])


def _delete_actions(project: Project, old: QuerySet[Action], cutoff: datetime) -> int:
    # The database checks the age by its own clock, which may be a little behind ours.
    return old.filter(created_at__lt=cutoff - timedelta(minutes=1)).delete()[0]


RULES: Mapping[str, Rule | RecordRule] = {
    "records": RecordRule(),
    "answers": Rule(_answered, "last", _empty_answers),
    "comments": Rule(lambda project: Report.objects.filter(project=project), "resolved_at", _delete_comments),
    "uploads": Rule(_with_report, "created_at", _clear_uploads),
    "actions": Rule(lambda project: Action.objects.filter(project=project), "created_at", _delete_actions),
}
