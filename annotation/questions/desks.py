"""Selectors of what waits for an annotator in each project."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from annotation.models import (
    Assignment,
    AssignmentState,
    Label,
    Membership,
    Oracle,
    Project,
    ProjectState,
    Query,
    QueryState,
    Role,
)
from annotation.questions import work_limits
from annotation.questions.work_limits import WorkLimit
from annotation.selectors import Person


@dataclass(frozen=True, slots=True)
class Waiting:
    """Whether a question waits; else the state that prevents it, and until when where that is known."""

    asks: bool = False
    state: str = ""
    until: datetime | None = None


NOTHING_WAITS: Final = Waiting()


def waiting_for(user: Person, projects: Collection[Project]) -> Mapping[int, Waiting]:
    """Return what waits for an annotator in each project, in a fixed number of statements."""
    reached = work_limits.limits_reached(projects, user) if projects else {}
    asked = Membership.objects.filter(user=user.pk, role=Role.ANNOTATOR, project__in=[one.pk for one in projects])
    asked = asked.annotate(asks=Exists(_held(user)) | Exists(_free(user, projects, reached)))
    rows = asked.values_list("project_id", "paused_at", "asks")
    found = {key: (paused_at, asks) for key, paused_at, asks in rows}
    return {one.pk: _waiting(one, *found[one.pk], reached.get(one.pk)) for one in projects if one.pk in found}


def _waiting(project: Project, paused_at: datetime | None, asks: bool, limit: WorkLimit | None) -> Waiting:
    if project.state != ProjectState.ACTIVE:
        return Waiting(state="paused")
    if paused_at is not None:
        return Waiting(state="person_paused")
    if limit is None or (asks and limit in work_limits.MAY_STILL_BE_ASKED):
        return Waiting(asks=asks)
    until = project.quiet_until if limit == WorkLimit.QUIET_HOURS else None
    return Waiting(state=str(limit), until=None if until is None else work_limits.next_time(until))


def _held(user: Person) -> QuerySet[Assignment]:
    return Assignment.objects.filter(project=OuterRef("project"), annotator=user.pk, state=AssignmentState.LEASED)


def _free(user: Person, projects: Collection[Project], reached: Mapping[int, WorkLimit]) -> QuerySet[Query]:
    """Return SQL that locks the first free question among some that the person may be shown."""
    earlier = Assignment.objects.filter(query=OuterRef("pk"), annotator=user.pk)
    free = Query.objects.filter(project=OuterRef("project"), state=QueryState.OPEN, open_slots__gt=0)
    allowed = ~Q(project__in=list(reached))
    if protected := [key for key, limit in reached.items() if limit == WorkLimit.PROTECTED_ANSWERS]:
        given = Label.objects.filter(query=OuterRef("pk"), annotator=user.pk)
        allowed |= Q(Exists(given), project__in=protected)
    met = [one for one in projects if reached.get(one.pk) == WorkLimit.ENCOUNTERS]
    if met:
        in_front = Query.objects.filter(project=OuterRef("project"), state=QueryState.OPEN, open_slots__gt=0)
        front = in_front.order_by("priority", "pk").values("pk")[: work_limits.KNOWN_WITHIN]
        has_met = Func(
            F("record"), F("project"), Value(user.pk), function="annotation_has_met", output_field=BooleanField()
        )
        crowds, inside = ([one.pk for one in met if (one.oracle == Oracle.CROWD) == crowd] for crowd in (True, False))
        known = Q(Exists(earlier), project__in=crowds) | Q(has_met, project__in=inside)
        allowed |= known & Q(pk__in=front)
    return (
        free.filter(allowed)
        .filter(Q(assigned_to=None) | Q(open_slots__gt=1) | Q(assigned_to=user.pk))
        # One index probe a question: as NOT EXISTS the planner may read all assignments of the person.
        .annotate(met=Coalesce(Subquery(earlier.values("state")[:1]), Value(AssignmentState.EXPIRED.value)))
        .filter(met=AssignmentState.EXPIRED)
    )
