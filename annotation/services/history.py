"""Noting who does what, for the people who answer for a project."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError, connection

from annotation.history_models import Action
from annotation.models import Project

# What labels, receipts and rows themselves say already, too often to say twice.
UNNOTED = frozenset(
    {
        "annotation:label",
        "annotation:submit",
        "annotation:skip",
        "annotation:undo",
        "annotation:flag",
        "annotation:comment",
        "annotation:read_guidelines",
        "annotation:crowd_start",
        "annotation:crowd_done",
        "api:claim_assignment",
        "api:label_assignment",
        "api:skip_assignment",
        "api:post_records",
        "api:predict",
    }
)
NOTED_APPS = ("annotation:", "learner:", "api:", "admin:", "operations:")
SET_ACTOR = "SELECT set_config('dpal.actor', %s, false)"


def is_noted(route: str) -> bool:
    """Say whether doing something by this route leaves a line."""
    return route.startswith(NOTED_APPS) and route not in UNNOTED


def note_action(*, actor: str, route: str, arguments: Mapping[str, Any]) -> Action:
    """Write one line; of the address only numbers are kept, since another part may be a secret."""
    slug = arguments.get("slug")
    project = Project.objects.filter(slug=slug).only("pk").first() if slug else None
    target = {name: value for name, value in arguments.items() if isinstance(value, int)}
    return Action.objects.create(project=project, actor=actor, route=route[:80], target=target)


@contextmanager
def acting(name: str) -> Iterator[None]:
    """Let the database know who changes what until the end of the block."""
    _set_actor(name)
    try:
        yield
    finally:
        try:
            _set_actor("")
        except DatabaseError:
            # The name goes with the connection.
            connection.close()


def _set_actor(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(SET_ACTOR, [name])
