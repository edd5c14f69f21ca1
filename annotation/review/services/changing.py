"""Bulk actions of the data manager, each noted in the activity log."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation import access
from annotation.choices.secrecy import hides_selection
from annotation.errors import InvalidConfiguration
from annotation.models import (
    Assignment,
    AssignmentState,
    Membership,
    Oracle,
    Project,
    Query,
    QueryState,
    Role,
)
from annotation.questions.services import correcting, flags
from annotation.work.services.history import note_effect
from privacy.choices import Kind
from privacy.wording import Message, as_message

IN_A_CROWD = as_message(
    "In front of a crowd nothing is assigned: who is asked next must not follow what others answered."
)
RANDOMISED = as_message(
    "Where answers are randomised nothing is assigned: who is asked must not follow what was answered."
)
SECRET = as_message("Where the choice is secret nothing is assigned: one record could then wait because of another.")


def assigning_refusal(project: Project) -> Message | None:
    if project.oracle == Oracle.CROWD:
        return IN_A_CROWD
    if project.settings.get(Kind.RANDOMIZER.key):
        return RANDOMISED
    return SECRET if hides_selection(project.settings) else None


def assignable_annotators(project: Project) -> QuerySet[Membership]:
    members = Membership.objects.filter(project=project, role=Role.ANNOTATOR, paused_at=None, user__machine=None)
    return members.order_by("user__username")


def assign_chosen(*, project: Project, query_ids: Sequence[int], person_id: int | None) -> list[int]:
    """Assign open questions to an annotator, or to nobody; return those that changed hands."""
    rule = assigning_refusal(project)
    if rule is not None:
        raise InvalidConfiguration(rule)
    with transaction.atomic():
        access.refuse_if_closed(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        if person_id is not None:
            # Who leaves or is paused at this moment waits, and takes the questions along to everybody.
            members = Membership.objects.select_for_update().filter(project=project, role=Role.ANNOTATOR)
            if not members.filter(pk__in=assignable_annotators(project), user=person_id).exists():
                raise InvalidConfiguration("Only an annotator of the project who is not paused can be assigned to.")
        found = Query.objects.select_for_update(no_key=True).filter(
            project=project, pk__in=query_ids, state=QueryState.OPEN, open_slots__gt=0
        )
        if person_id is None:
            found = found.filter(assigned_to__isnull=False)
        else:
            met = Assignment.objects.filter(project=project, annotator=person_id, query=OuterRef("pk"))
            had = Exists(met.exclude(state=AssignmentState.EXPIRED))
            found = found.filter(~had).filter(Q(assigned_to=None) | ~Q(assigned_to=person_id))
        ids = [query.pk for query in found.order_by("pk")]
        Query.objects.filter(pk__in=ids).update(assigned_to=person_id)
    return ids


def change_chosen(
    *, project: Project, query_ids: Sequence[int], action: str, actor: str, comment: str = "", person: int | None = None
) -> list[int]:
    """Do something with chosen questions, each noted in the log; return those that changed."""
    with transaction.atomic():
        if action == "send_back":
            done = correcting.send_back(project=project, query_ids=query_ids, comment=comment)
        elif action == "set_aside":
            done = flags.set_aside_chosen(project=project, query_ids=query_ids)
        else:
            # No annotator has the number 0, and the service says so.
            assignee = None if action == "unassign" else person or 0
            done = assign_chosen(project=project, query_ids=query_ids, person_id=assignee)
        for query_id in done:
            note_effect(project=project, actor=actor, route=f"question:{action}", target={"query_id": query_id})
    return done
