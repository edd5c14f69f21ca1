"""What is fixed in a project and since when, and what people did in it."""

from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from annotation.models import Project
from annotation.models.history import Action
from privacy.models import EntryKind, LedgerEntry

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
    """Say whether anything was ever reserved on one of the project's accounts."""
    accounts = [account for account in (project.pool_account_id, project.labels_account_id) if account]
    return LedgerEntry.objects.filter(account__in=accounts, kind=EntryKind.RESERVE).exists()


def fixed_settings(project: Project) -> list[tuple[str, Any]]:
    """Return what a guarantee rests on, by name."""
    found = [(name, getattr(project, name)) for name in FIXED]
    return [(name, value) for name, value in found if value not in (None, [], "")]


def changes_in(project: Project) -> QuerySet[Any]:
    """Return changes of the configuration, newest first, with the `version` each made.

    What a project was opened with is version 1.
    """
    place = Window(RowNumber(), order_by=F("pk").asc())
    return project.changes.annotate(version=place + 1).order_by("-pk")


def actions_in(
    project: Project, *, actor: str = "", route: str = "", since: date | None = None, until: date | None = None
) -> QuerySet[Action]:
    """Return lines of the log, newest first: of a person, of a page or route, of days that are both included."""
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
