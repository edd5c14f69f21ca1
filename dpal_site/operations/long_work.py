"""Long work of all projects as whoever runs the site sees it: what waits, runs, is stuck or failed, not its content."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import BooleanField, Count, ExpressionWrapper, Min, Model, Q, QuerySet, Sum
from django.db.models.functions import Now
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.models import UNFINISHED, Assignment, AssignmentState, Job, Query, QueryState, WorkState
from annotation.work.services import attempts, jobs
from learner.models import Round, TrainingRun

SHOWN = 200
FAILED_SHOWN = 100
FAILED_DAYS = 7
WAITS_LONG = timedelta(minutes=10)
RUNS_LONG = timedelta(hours=1)
KINDS: dict[str, type[Model]] = {"job": Job, "round": Round, "training": TrainingRun}
NAMES: dict[str, Promise] = {
    jobs.IMPORT: _("Reading an upload"),
    jobs.GATE: _("Gate"),
    jobs.SURVEY: _("Counting an upload"),
    jobs.COMPARE: _("Comparing answers"),
    jobs.EXPORT: _("Writing a label file"),
    "round": _("Choosing questions"),
    "training": _("Training"),
}


@dataclass(frozen=True, slots=True)
class LongWork:
    kind: str
    key: str
    name: str | Promise
    project: str
    state: str
    attempt: int
    since: datetime
    trouble: str | Promise
    error: str
    abandoned: bool

    @property
    def may_be_sent(self) -> bool:
        return self.state == WorkState.WAITING or self.abandoned


@dataclass(frozen=True, slots=True)
class Leases:
    project: str
    wanted: int
    held: int
    oldest: datetime | None


def unfinished() -> list[LongWork]:
    found = [_described(kind, row) for kind, rows in _rows() for row in _open(rows).order_by("created_at")[:SHOWN]]
    return sorted(found, key=lambda each: each.since)[:SHOWN]


def failed_lately() -> list[LongWork]:
    lately = Q(state=WorkState.FAILED, finished_at__gt=Now() - timedelta(days=FAILED_DAYS))
    found = [
        _described(kind, row)
        for kind, rows in _rows()
        for row in _marked(rows.filter(lately)).order_by("-finished_at")[:FAILED_SHOWN]
    ]
    return sorted(found, key=lambda each: each.since, reverse=True)[:FAILED_SHOWN]


def leases() -> list[Leases]:
    open_ones = Query.objects.filter(state=QueryState.OPEN).values_list("project__slug")
    wanted = dict(open_ones.annotate(slots=Sum("open_slots")).order_by())
    held = Assignment.objects.filter(state=AssignmentState.LEASED).values_list("project__slug")
    front = {slug: (n, first) for slug, n, first in held.annotate(n=Count("pk"), first=Min("created_at")).order_by()}
    return [Leases(slug, wanted.get(slug, 0), *front.get(slug, (0, None))) for slug in sorted(wanted.keys() | front)]


def resend_long_work(*, kind: str, key: str) -> bool:
    row = _found(kind, key)
    if row is None or not _described(kind, row).may_be_sent:
        return False
    return any(each.send() for each in jobs.open_work(row))


def stop_long_work(*, kind: str, key: str, by: str) -> bool:
    row = _found(kind, key)
    return row is not None and attempts.cancel_work(row=row, by=by)


def _found(kind: str, key: str) -> Any:
    rows = KINDS[kind]._default_manager.all()
    try:
        return _open(rows).filter(pk=rows.model._meta.pk.to_python(key)).first()
    except ValidationError:
        return None


def _rows() -> Iterator[tuple[str, QuerySet[Any]]]:
    for kind, model in KINDS.items():
        yield kind, model._default_manager.select_related("project")


def _open(rows: QuerySet[Any]) -> QuerySet[Any]:
    return _marked(rows.filter(state__in=UNFINISHED))


def _marked(rows: QuerySet[Any]) -> QuerySet[Any]:
    def holds(condition: Q) -> "ExpressionWrapper[Any]":
        return ExpressionWrapper(condition, output_field=BooleanField())

    marked: QuerySet[Any] = rows.annotate(
        abandoned=holds(Q(state=WorkState.RUNNING, leased_until__lt=Now())),
        waits_long=holds(Q(state=WorkState.WAITING, created_at__lt=Now() - WAITS_LONG)),
        runs_long=holds(Q(state=WorkState.RUNNING, started_at__lt=Now() - RUNS_LONG)),
    )
    return marked


def _described(kind: str, row: Any) -> LongWork:
    name = row.kind if kind == "job" else kind
    trouble: str | Promise = ""
    if row.abandoned:
        trouble = _("its worker is gone")
    elif row.runs_long:
        trouble = _("runs for long")
    elif row.waits_long:
        trouble = _("waits for long")
    return LongWork(
        kind=kind,
        key=str(row.pk),
        name=NAMES.get(name, name),
        # The plan of a project that is not opened yet.
        project=row.project.slug if row.project_id else "",
        state=row.state,
        attempt=row.attempt,
        since=row.finished_at or row.started_at or row.created_at,
        trouble=trouble,
        error=row.error,
        abandoned=bool(row.abandoned),
    )
