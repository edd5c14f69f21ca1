"""What managers do with several questions at once: each of them leaves a line in the log."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from annotation.browsing.services import assigning
from annotation.log.services.history import note_effect
from annotation.models import Project
from annotation.questions.services import correcting
from annotation.reports.services import setting_aside
from annotation.work.services.history import note_effect


@dataclass(frozen=True, slots=True)
class Change:
    """What to do, and what it takes: a comment to send back, a person to assign to."""

    action: str
    comment: str = ""
    person: int | None = None


def change_chosen(*, project: Project, query_ids: Sequence[int], wanted: Change, actor: str) -> list[int]:
    """Do it with the questions that a manager chose; return those that it changed."""
    with transaction.atomic():
        done = _changed(project, query_ids, wanted)
        for query_id in done:
            note_effect(project=project, actor=actor, route=f"question:{wanted.action}", target={"query_id": query_id})
    return done


def _changed(project: Project, query_ids: Sequence[int], wanted: Change) -> list[int]:
    if wanted.action == "send_back":
        return correcting.send_back(project=project, query_ids=query_ids, comment=wanted.comment)
    if wanted.action == "assign":
        # Nobody is no annotator: the service says so.
        return assigning.assign_chosen(project=project, query_ids=query_ids, person_id=wanted.person or 0)
    if wanted.action == "unassign":
        return assigning.assign_chosen(project=project, query_ids=query_ids, person_id=None)
    return setting_aside.set_aside_chosen(project=project, query_ids=query_ids)
