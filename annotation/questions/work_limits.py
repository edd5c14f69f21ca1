"""How much one person may answer and see in a project, and at which hours; nothing here is a privacy budget.

Limits on what one person sees are about collusion: however many answers somebody gives, they can tell nobody about more
contributors, or more texts of a gate, than the project allows.
"""

from datetime import datetime, time, timedelta
from enum import StrEnum

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet
from django.utils import timezone

from annotation import selectors
from annotation.models import Assignment, AssignmentState, Encounter, Label, Oracle, Project, QueryState
from annotation.models.configurations import settings_in


class WorkLimit(StrEnum):
    """Why a person gets no further question although there may be some."""

    QUIET_HOURS = "quiet_hours"
    ANSWERS_PER_PERSON = "answers_per_person"
    ANSWERS_PER_DAY = "answers_per_day"
    ENCOUNTERS = "encounters"
    PROTECTED_ANSWERS = "protected_answers"


def limit_reached(project: Project, user: AbstractBaseUser) -> WorkLimit | None:
    """Return the limit the person has reached; asks the database only where the project has one."""
    if is_quiet(project):
        return WorkLimit.QUIET_HOURS
    cap = answers_cap(project)
    if cap is not None and questions_answered(project, user) >= cap:
        return WorkLimit.PROTECTED_ANSWERS
    if project.answers_per_person is not None and _answers_of(project, user).count() >= project.answers_per_person:
        return WorkLimit.ANSWERS_PER_PERSON
    if project.answers_per_day is not None:
        today = _answers_of(project, user).filter(finished_at__gte=selectors.site_midnight()).count()
        if today >= project.answers_per_day:
            return WorkLimit.ANSWERS_PER_DAY
    if project.encounter_limit is not None and encounters_of(project, user) >= project.encounter_limit:
        return WorkLimit.ENCOUNTERS
    return None


def _answers_of(project: Project, user: AbstractBaseUser) -> QuerySet[Assignment]:
    return Assignment.objects.filter(annotator=user.pk, project=project.pk, state=AssignmentState.LABELLED)


def answers_cap(project: Project) -> int | None:
    """Return how many ordinary questions one annotator may answer where all their answers are protected together."""
    settings = settings_in(project.configuration_id)
    return settings.get("answers_cap") if settings.get("answers_unit") == "annotator" else None


def questions_answered(project: Project, user: AbstractBaseUser) -> int:
    """Count the ordinary questions the person ever answered; an answer that was taken back was given all the same."""
    given = Label.objects.filter(annotator=user.pk, query__project=project.pk)
    return given.exclude(query__state=QueryState.GOLD).values("query").distinct().count()


def encounters_of(project: Project, user: AbstractBaseUser) -> int:
    """Count the contributors whose records the person was shown, or the texts of the gate, answered or not."""
    # A crowd project links nobody to a contributor, not even here.
    shown = Assignment if project.oracle == Oracle.CROWD else Encounter
    return shown._default_manager.filter(annotator=user.pk, project=project.pk).count()


def is_quiet(project: Project) -> bool:
    """Say whether the project hands nothing out at this hour of the site's day."""
    if project.quiet_from is None or project.quiet_until is None:
        return False
    # The site's clock: the viewer's is whatever their browser says.
    now = timezone.localtime(timezone=timezone.get_default_timezone()).time()
    return within_hours(now, project.quiet_from, project.quiet_until)


def next_time(of_day: time) -> datetime:
    """Return when the site's clock shows a time of day next, as a moment every zone has a time for."""
    here = timezone.get_default_timezone()
    now = timezone.localtime(timezone=here)
    today = datetime.combine(now.date(), of_day, tzinfo=here)
    return today if today > now else datetime.combine(now.date() + timedelta(days=1), of_day, tzinfo=here)


def within_hours(now: time, start: time, end: time) -> bool:
    """Say whether a time of day lies between two others, over midnight if the second is the smaller."""
    return start <= now < end if start < end else now >= start or now < end
