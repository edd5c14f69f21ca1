"""History of a project's settings, and the log of actions."""

from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from annotation.models import Project
from annotation.models.history import Action


def changes_in(project: Project) -> QuerySet[Any]:
    place = Window(RowNumber(), order_by=F("pk").asc())
    return project.changes.annotate(version=place + 1).order_by("-pk")


def actions_in(
    project: Project, *, actor: str = "", route: str = "", since: date | None = None, until: date | None = None
) -> QuerySet[Action]:
    found = Action.objects.filter(project=project).order_by("-pk")
    if actor:
        found = found.filter(actor=actor)
    if route:
        found = found.filter(route=route)
    if since is not None:
        found = found.filter(created_at__gte=_midnight(since))
    if until is not None and until < date.max:
        found = found.filter(created_at__lt=_midnight(until + timedelta(days=1)))
    return found


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))
