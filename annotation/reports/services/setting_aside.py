"""Questions nobody gets further with: they leave the queue, a manager sees them, and may have them asked again.

Without this a question everybody skips would keep its round open for ever, and one that shows what nobody should see
would go to the next person.
"""

from collections.abc import Sequence

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from annotation.errors import InvalidConfiguration
from annotation.models import Assignment, AssignmentState, Membership, Project, Query, QueryState, Report, Role
from annotation.work.services import jobs
from privacy.choices import Kind

ANSWERED_OR_SKIPPED = (AssignmentState.LABELLED, AssignmentState.SKIPPED)
# A machine that could not answer says nothing about the question.
MACHINE_SKIPPED = "no class named"
HOLDING_A_SLOT = (AssignmentState.LABELLED, AssignmentState.LEASED)


def set_aside_if_nobody_answers(*, project: Project, query: Query) -> bool:
    """Set a question aside once enough people skipped it, or all who could be asked; call it with the row locked."""
    if query.state != QueryState.OPEN:
        return False
    skips = Assignment.objects.filter(query=query.pk, state=AssignmentState.SKIPPED)
    skipped = skips.exclude(skip_reason=MACHINE_SKIPPED).count()
    if skipped < project.skips_to_set_aside and _somebody_is_left(project, query):
        return False
    set_aside(project=project, query=query)
    return True


def _somebody_is_left(project: Project, query: Query) -> bool:
    done = Assignment.objects.filter(query=query.pk, annotator=OuterRef("user"), state__in=ANSWERED_OR_SKIPPED)
    return Membership.objects.filter(~Exists(done), project=project.pk, role=Role.ANNOTATOR).exists()


def set_aside(*, project: Project, query: Query) -> None:
    """Take an open question out of the queue; call it with the row locked. Who is at it may still answer."""
    Query.objects.filter(pk=query.pk, state=QueryState.OPEN).update(state=QueryState.SET_ASIDE, open_slots=0)
    jobs.send_project_changed(project.pk)


def set_aside_chosen(*, project: Project, query_ids: Sequence[int]) -> list[int]:
    """Take open questions out of the queue that a manager chose; return those that were open."""
    if project.settings.get(Kind.RANDOMIZER.key):
        # Which questions get a response would follow what was answered, and nobody charged for that.
        raise InvalidConfiguration("Where answers are randomised questions are set aside by annotators alone.")
    with transaction.atomic():
        chosen = Query.objects.select_for_update(no_key=True).filter(
            project=project, pk__in=query_ids, state=QueryState.OPEN
        )
        found = list(chosen.order_by("pk"))
        for query in found:
            set_aside(project=project, query=query)
    return [query.pk for query in found]


def end_leases(*, query: Query) -> None:
    """Take a question off the pages of all who are at it; call it with the row locked."""
    Assignment.objects.filter(query=query.pk, state=AssignmentState.LEASED).update(
        state=AssignmentState.EXPIRED, finished_at=Now()
    )


def ask_set_aside_again(*, project: Project, query_id: int, user: AbstractBaseUser) -> Query:
    """Put a question back into the queue, for those who skipped it as well, and settle what was reported about it."""
    with transaction.atomic():
        query = _locked_set_aside(project, query_id)
        Assignment.objects.filter(query=query.pk, state=AssignmentState.SKIPPED).update(state=AssignmentState.EXPIRED)
        taken = Assignment.objects.filter(query=query.pk, state__in=HOLDING_A_SLOT).count()
        # Whoever reviewed it set it aside with all its answers: one more person is asked.
        query.overlap = max(query.overlap, taken + 1)
        query.state, query.open_slots = QueryState.OPEN, query.overlap - taken
        query.save(update_fields=["state", "overlap", "open_slots"])
        _resolve(query, user)
    return query


def leave_out_set_aside(*, project: Project, query_id: int, user: AbstractBaseUser) -> Query:
    """Give a question up: nobody is asked about it again, and what was reported about it is settled."""
    with transaction.atomic():
        query = _locked_set_aside(project, query_id)
        query.state, query.open_slots, query.assigned_to = QueryState.WITHDRAWN, 0, None
        query.save(update_fields=["state", "open_slots", "assigned_to"])
        end_leases(query=query)
        _resolve(query, user)
    return query


def _locked_set_aside(project: Project, query_id: int) -> Query:
    query = Query.objects.select_for_update(no_key=True).get(pk=query_id, project=project)
    if query.state != QueryState.SET_ASIDE:
        raise InvalidConfiguration("This question is not set aside any more.")
    return query


def _resolve(query: Query, user: AbstractBaseUser) -> None:
    Report.objects.filter(query=query.pk, resolved_at=None).update(resolved_at=Now(), resolved_by=user.pk)
