"""Limits on how much one person answers and sees, against collusion, and what waits for them within these."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Any, Final

from django.db.models import BooleanField, Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotation import selectors
from annotation.models import (
    Assignment,
    AssignmentState,
    Encounter,
    Label,
    Membership,
    Oracle,
    Project,
    ProjectState,
    Query,
    QueryState,
    Role,
)
from annotation.models.configurations import settings_in
from annotation.selectors import Person


class WorkLimit(StrEnum):
    QUIET_HOURS = "quiet_hours"
    ANSWERS_PER_PERSON = "answers_per_person"
    ANSWERS_PER_DAY = "answers_per_day"
    ENCOUNTERS = "encounters"
    PROTECTED_ANSWERS = "protected_answers"


# As `annotation_claim` has it: how far from the front known contributors are looked for.
KNOWN_WITHIN: Final = 2000
# What somebody who reached one of these took back, or knows already, they may still be asked.
MAY_STILL_BE_ASKED: Final = frozenset({WorkLimit.ENCOUNTERS, WorkLimit.PROTECTED_ANSWERS})


def limit_reached(project: Project, user: Person, *, place: int = 0) -> WorkLimit | None:
    return limits_reached([project], user, place=place).get(project.pk)


def limits_reached(projects: Collection[Project], user: Person, *, place: int = 0) -> Mapping[int, WorkLimit]:
    """Return the first limit reached in each project; questions held at other places of a batch count as answered."""
    reached = {project.pk: WorkLimit.QUIET_HOURS for project in projects if is_quiet(project)}
    for limit, most_in, counted in LIMITS:
        bounds = {one: most for one in projects if one.pk not in reached and (most := most_in(one)) is not None}
        counts = counted(bounds, user, place) if bounds else {}
        reached |= {one.pk: limit for one, most in bounds.items() if counts.get(one.pk, 0) >= most}
    return reached


def _answers(projects: Collection[Project], user: Person, place: int) -> Mapping[int, int]:
    return _by_project(_work_in(projects, user).filter(Q(state=AssignmentState.LABELLED) | _held_elsewhere(place)))


def _answers_today(projects: Collection[Project], user: Person, place: int) -> Mapping[int, int]:
    today = Q(state=AssignmentState.LABELLED, finished_at__gte=selectors.site_midnight())
    return _by_project(_work_in(projects, user).filter(today | _held_elsewhere(place)))


def _work_in(projects: Collection[Project], user: Person) -> QuerySet[Assignment]:
    return Assignment.objects.filter(annotator=user.pk, project__in=[project.pk for project in projects])


def _held_elsewhere(place: int) -> Q:
    return Q(state=AssignmentState.LEASED) & ~Q(place=place)


def _by_project(rows: QuerySet[Any]) -> Mapping[int, int]:
    return dict(rows.order_by().values_list("project").annotate(Count("pk")))


def answers_cap(project: Project) -> int | None:
    """Return how many ordinary questions one annotator may answer where the unit is the annotator."""
    settings = settings_in(project.configuration_id)
    return settings.get("answers_cap") if settings.get("answers_unit") == "annotator" else None


def _questions_answered(projects: Collection[Project], user: Person, place: int) -> Mapping[int, int]:
    """Count ordinary questions the person ever answered; answers taken back count, too."""
    given = Label.objects.filter(annotator=user.pk, query__project__in=[project.pk for project in projects])
    ordinary = given.exclude(query__state=QueryState.GOLD).order_by().values_list("query__project")
    found = dict(ordinary.annotate(Count("query", distinct=True)))
    held = _work_in(projects, user).filter(_held_elsewhere(place)).exclude(query__state=QueryState.GOLD)
    for key, new in _by_project(held.exclude(query__in=given.values("query"))).items():
        found[key] = found.get(key, 0) + new
    return found


def encounters(projects: Collection[Project], user: Person, place: int = 0) -> Mapping[int, int]:
    # A crowd project links nobody to a contributor, not even here.
    found: dict[int, int] = {}
    crowds = [project.pk for project in projects if project.oracle == Oracle.CROWD]
    inside = [project.pk for project in projects if project.oracle != Oracle.CROWD]
    for shown, keys in ((Assignment, crowds), (Encounter, inside)):
        if keys:
            found |= _by_project(shown._default_manager.filter(annotator=user.pk, project__in=keys))
    return found


def is_quiet(project: Project) -> bool:
    if project.quiet_from is None or project.quiet_until is None:
        return False
    # The site's clock: the viewer's is whatever their browser says.
    now = timezone.localtime(timezone=timezone.get_default_timezone()).time()
    return within_hours(now, project.quiet_from, project.quiet_until)


def next_time(of_day: time) -> datetime:
    here = timezone.get_default_timezone()
    now = timezone.localtime(timezone=here)
    today = datetime.combine(now.date(), of_day, tzinfo=here)
    return today if today > now else datetime.combine(now.date() + timedelta(days=1), of_day, tzinfo=here)


def within_hours(now: time, start: time, end: time) -> bool:
    return start <= now < end if start < end else now >= start or now < end


Counted = Callable[[Collection[Project], Person, int], Mapping[int, int]]
Bound = tuple[WorkLimit, Callable[[Project], int | None], Counted]
# In the order in which somebody is told of them: each with how much a project allows and what is counted.
LIMITS: Final[tuple[Bound, ...]] = (
    (WorkLimit.PROTECTED_ANSWERS, answers_cap, _questions_answered),
    (WorkLimit.ANSWERS_PER_PERSON, lambda project: project.answers_per_person, _answers),
    (WorkLimit.ANSWERS_PER_DAY, lambda project: project.answers_per_day, _answers_today),
    (WorkLimit.ENCOUNTERS, lambda project: project.encounter_limit, encounters),
)


@dataclass(frozen=True, slots=True)
class Waiting:
    asks: bool = False
    state: str = ""
    until: datetime | None = None


NOTHING_WAITS: Final = Waiting()


def waiting_for(user: Person, projects: Collection[Project]) -> Mapping[int, Waiting]:
    reached = limits_reached(projects, user) if projects else {}
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
    if limit is None or (asks and limit in MAY_STILL_BE_ASKED):
        return Waiting(asks=asks)
    until = project.quiet_until if limit == WorkLimit.QUIET_HOURS else None
    return Waiting(state=str(limit), until=None if until is None else next_time(until))


def _held(user: Person) -> QuerySet[Assignment]:
    held = Assignment.objects.filter(project=OuterRef("project"), annotator=user.pk, state=AssignmentState.LEASED)
    return held.filter(place=0)


def _free(user: Person, projects: Collection[Project], reached: Mapping[int, WorkLimit]) -> QuerySet[Query]:
    earlier = Assignment.objects.filter(query=OuterRef("pk"), annotator=user.pk)
    free = Query.objects.filter(project=OuterRef("project"), state=QueryState.OPEN, open_slots__gt=0)
    allowed = ~Q(project__in=list(reached))
    if protected := [key for key, limit in reached.items() if limit == WorkLimit.PROTECTED_ANSWERS]:
        given = Label.objects.filter(query=OuterRef("pk"), annotator=user.pk)
        allowed |= Q(Exists(given), project__in=protected)
    met = [one for one in projects if reached.get(one.pk) == WorkLimit.ENCOUNTERS]
    if met:
        in_front = Query.objects.filter(project=OuterRef("project"), state=QueryState.OPEN, open_slots__gt=0)
        front = in_front.order_by("priority", "pk").values("pk")[:KNOWN_WITHIN]
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
