"""Looks of the clock at projects: it reads only those that something may have moved since the last look."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Exists, Min, OuterRef, Q
from django.db.models.functions import Now
from django.utils import timezone

from annotation.models import DueLook, Project, ProjectMove, ProjectState

# Looks of one tick; those that are left come with the next one.
MOST_LOOKS = 20


def look_at(project_ids: Iterable[int], *, at: datetime | None = None) -> None:
    """Have the clock look at projects once the caller's transaction commits, or from a time on."""
    # One row a project would have clicks in the same project wait for each other.
    DueLook.objects.bulk_create(DueLook(project_id=pk, due_at=at or Now()) for pk in project_ids)


def due_looks() -> list[tuple[int, str]]:
    """Return number and arrival of the projects to look at, longest due first."""
    found = (
        DueLook.objects.filter(due_at__lte=Now())
        .values_list("project_id", "project__arrival")
        .annotate(first=Min("due_at"))
        .order_by("first")
    )
    return [(project_id, arrival) for project_id, arrival, _first in found[:MOST_LOOKS]]


def begin_look(project_id: int) -> None:
    """Forget why to look, before anything is read: what changes later asks for another look."""
    DueLook.objects.filter(project=project_id).delete()
    note_move(project_id, moved_at=Now())


def note_move(project_id: int, **moments: Now) -> None:
    """Write down when a project moved, or was told of."""
    ProjectMove.objects.bulk_create(
        [ProjectMove(project_id=project_id, **moments)],
        update_conflicts=True,
        unique_fields=["project"],
        update_fields=list(moments),
    )


def has_moved(project: str, *, since: str) -> Q:
    """Say in a query whether something may have moved a project since a moment, or whether that was a day ago."""
    asked = DueLook.objects.filter(project=OuterRef(project), due_at__lte=Now())
    moved = ProjectMove.objects.filter(project=OuterRef(project), moved_at__gte=OuterRef(since))
    long_ago = Now() - timedelta(days=1)
    return Q(Exists(asked)) | Q(Exists(moved)) | Q(**{since: None}) | Q(**{f"{since}__lt": long_ago})


def put_off_look(project_id: int) -> None:
    """Look a minute later at a project whose look failed, so that it keeps no other waiting."""
    DueLook.objects.filter(project=project_id).update(due_at=Now() + timedelta(minutes=1))


def look_again() -> None:
    """Look at each active project once a day, whatever was missed: a share every hour, one after the other."""
    now = timezone.now()
    active = Project.objects.filter(state=ProjectState.ACTIVE).values_list("pk", flat=True)
    share = [pk for pk in active if pk % 24 == now.hour]
    DueLook.objects.bulk_create(
        DueLook(project_id=pk, due_at=now + timedelta(seconds=5 * place)) for place, pk in enumerate(share)
    )
