"""Retention: records and files that are kept no longer than a project says."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Exists, F, Max, Min, OuterRef, Q, QuerySet
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
from annotation.models.history import Action, ProjectChange
from annotation.models.imports import UploadDraft
from annotation.models.retention import Retention, SlotMark
from annotation.work.services import files

# Longer than the slowest request that brings a file.
UNOWNED_AFTER = timedelta(hours=6)


def forget_unowned_files(*, older_than: timedelta = UNOWNED_AFTER) -> int:
    """Delete files no upload knows: whoever received them died before the upload was stored; return how many.

    They may name contributors, and nobody will ever read them.
    """
    owned = {name for pair in Dataset.objects.values_list("upload", "pixels").iterator() for name in pair if name}
    owned |= set(UploadDraft.objects.values_list("upload", flat=True))
    owned |= pool_files.known_files()
    deleted = 0
    for name in _kept_files():
        if name in owned or timezone.now() - default_storage.get_modified_time(name) < older_than:
            continue
        # Its upload may have been stored since the others were listed.
        stored = Dataset.objects.filter(Q(upload=name) | Q(pixels=name)).exists() or pool_files.is_known(name)
        if not stored and not UploadDraft.objects.filter(upload=name).exists():
            default_storage.delete(name)
            deleted += 1
    return deleted


def _kept_files() -> Iterator[str]:
    """Yield the names under which uploads, their pixels and their columns are kept."""
    for name in files.names_in(uploads.FOLDER):
        _, folder, file = name.rsplit("/", 2)
        if folder == uploads.DRAFTS or file.startswith(("upload", "pixels-", pool_files.PREFIX)):
            yield name


PRIVATE = (DatasetRole.POOL, DatasetRole.CHARGED_START)
FINISHED = (QueryState.CLOSED, QueryState.WITHDRAWN)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Due:
    """One kind of thing: how long it is kept, how many of it are over that now, and when the next is."""

    kind: str
    days: int | None
    now: int
    following: datetime | None


def retention_of(project: Project) -> Retention:
    """Return the project's periods, the defaults where nobody chose any."""
    found, _made = Retention.objects.get_or_create(project=project)
    return found


def set_retention(*, project: Project, actor: str, **days: int | None) -> Retention:
    """Change periods; what changed is part of the project's history, which stays."""
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


def what_is_due(project: Project, *, now: datetime | None = None) -> list[Due]:
    """Return every kind with what would go at this moment; nothing is changed."""
    now = now or timezone.now()
    periods = retention_of(project)
    found = []
    for kind, rule in RULES.items():
        days: int | None = getattr(periods, f"{kind}_days")
        due = 0 if days is None else rule.overdue(project, now - days * DAY)
        # What is overdue goes within the hour, so the next is what comes after it.
        oldest = None if days is None else rule.oldest(project, now - days * DAY)
        found.append(Due(kind, days, due, None if oldest is None or days is None else oldest + days * DAY))
    return found


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
                forgetting.void_exports(project)
    if gone:
        Action.objects.create(project=project, actor="", route="retention", target=gone)
    return gone


def _earliest(rows: "QuerySet[Any]", field: str) -> datetime | None:
    found: datetime | None = rows.aggregate(at=Min(field))["at"]
    return found


def _mark_slots(project: Project, now: datetime) -> None:
    slots = Dataset.objects.filter(project=project, role=DatasetRole.POOL).aggregate(n=Max("row_count"))["n"] or 0
    SlotMark.objects.get_or_create(project=project, day=now.date(), defaults={"slots": slots})


def _old_records(project: Project, cutoff: datetime) -> QuerySet[Record]:
    private = Record.objects.filter(dataset__project=project, dataset__role__in=PRIVATE, emptied=False)
    if project.arrival != Arrival.STREAM:
        return private.filter(dataset__state=DatasetState.READY, dataset__created_at__lt=cutoff)
    mark = SlotMark.objects.filter(project=project, day__lte=cutoff.date()).order_by("-day").first()
    return private.filter(dataset__role=DatasetRole.POOL, row_number__lt=mark.slots if mark else 0)


def _old_parts(project: Project, cutoff: datetime) -> QuerySet[PoolPart]:
    return PoolPart.objects.filter(
        dataset__project=project, dataset__state=DatasetState.READY, dataset__created_at__lt=cutoff
    )


def _overdue_records(project: Project, cutoff: datetime) -> int:
    return _old_records(project, cutoff).count() + pool_files.held_rows(_old_parts(project, cutoff))


def _oldest_record(project: Project, cutoff: datetime) -> datetime | None:
    if project.arrival == Arrival.STREAM:
        mark = SlotMark.objects.filter(project=project, day__gt=cutoff.date(), slots__gt=0).order_by("day").first()
        start = timezone.get_default_timezone()
        return None if mark is None else datetime.combine(mark.day, datetime.min.time(), start)
    private = Dataset.objects.filter(project=project, role__in=PRIVATE, created_at__gte=cutoff)
    held = Q(records__emptied=False) | Q(pool_parts__emptied_count__lt=F("pool_parts__row_count"))
    return _earliest(private.filter(held), "created_at")


def _empty_records(project: Project, cutoff: datetime) -> int:
    in_columns = pool_files.empty_parts(_old_parts(project, cutoff))
    return in_columns + forgetting.empty_records(_old_records(project, cutoff), project=project).records


def _answered(project: Project) -> QuerySet[Query]:
    done = Assignment.objects.filter(query=OuterRef("pk"), finished_at__isnull=False)
    # Strangers must not learn from what stays where others answered otherwise; experts have such a question to settle.
    finished = (*FINISHED, QueryState.DISPUTED) if project.oracle == Oracle.CROWD else FINISHED
    return Query.objects.filter(Exists(done), project=project, state__in=finished, emptied=False)


def _old_answers(project: Project, cutoff: datetime) -> QuerySet[Query]:
    late = Assignment.objects.filter(query=OuterRef("pk")).filter(Q(finished_at=None) | Q(finished_at__gte=cutoff))
    return _answered(project).filter(~Exists(late))


def _oldest_answer(project: Project, cutoff: datetime) -> datetime | None:
    last = _answered(project).annotate(last=Max("assignments__finished_at")).filter(last__gte=cutoff)
    return _earliest(last, "last")


def _empty_answers(project: Project, cutoff: datetime) -> int:
    old = list(_old_answers(project, cutoff).values_list("pk", flat=True))
    if not old:
        return 0
    behind = Record.objects.filter(query__in=old, dataset__role=DatasetRole.POOL)
    forgetting.empty_records(behind, project=project)
    # In a crowd project no record hangs on a question; there its text was shown to many and stays.
    forgetting.empty_questions(Query.objects.filter(pk__in=old), project=project)
    return len(old)


def _old_comments(project: Project, cutoff: datetime) -> QuerySet[Report]:
    return Report.objects.filter(project=project, resolved_at__lt=cutoff)


def _oldest_comment(project: Project, cutoff: datetime) -> datetime | None:
    return _earliest(Report.objects.filter(project=project, resolved_at__gte=cutoff), "resolved_at")


def _delete_comments(project: Project, cutoff: datetime) -> int:
    skipped = Assignment.objects.filter(project=project, finished_at__lt=cutoff).exclude(skip_reason="")
    skipped.update(skip_reason="")
    return _old_comments(project, cutoff).delete()[0]


def _old_uploads(project: Project, cutoff: datetime) -> QuerySet[Dataset]:
    return _with_report(project).filter(created_at__lt=cutoff)


def _with_report(project: Project) -> QuerySet[Dataset]:
    read = Dataset.objects.filter(project=project).exclude(state=DatasetState.RECEIVING)
    return read.exclude(bad_row_report=[], upload="")


def _oldest_upload(project: Project, cutoff: datetime) -> datetime | None:
    return _earliest(_with_report(project).filter(created_at__gte=cutoff), "created_at")


def _clear_uploads(project: Project, cutoff: datetime) -> int:
    old = list(_old_uploads(project, cutoff).values_list("pk", flat=True))
    for dataset_id in old:
        datasets.forget_upload(dataset_id=dataset_id)
    return Dataset.objects.filter(pk__in=old).update(bad_row_report=[])


def _old_actions(project: Project, cutoff: datetime) -> QuerySet[Action]:
    return Action.objects.filter(project=project, created_at__lt=cutoff)


def _oldest_action(project: Project, cutoff: datetime) -> datetime | None:
    return _earliest(Action.objects.filter(project=project, created_at__gte=cutoff), "created_at")


def _delete_actions(project: Project, cutoff: datetime) -> int:
    # The database checks the age by its own clock, which may be a little behind ours.
    return _old_actions(project, cutoff - timedelta(minutes=1)).delete()[0]


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind is found and erased, given the moment before which it is too old."""

    overdue: Callable[[Project, datetime], int]
    oldest: Callable[[Project, datetime], datetime | None]
    erase: Callable[[Project, datetime], int]


def _number(overdue: Callable[[Project, datetime], "QuerySet[Any]"]) -> Callable[[Project, datetime], int]:
    return lambda project, cutoff: overdue(project, cutoff).count()


RULES = {
    "records": Rule(_overdue_records, _oldest_record, _empty_records),
    "answers": Rule(_number(_old_answers), _oldest_answer, _empty_answers),
    "comments": Rule(_number(_old_comments), _oldest_comment, _delete_comments),
    "uploads": Rule(_number(_old_uploads), _oldest_upload, _clear_uploads),
    "actions": Rule(_number(_old_actions), _oldest_action, _delete_actions),
}
