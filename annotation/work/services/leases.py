"""Leases of questions: looked up, locked in one order, given back and taken again."""

from datetime import timedelta

from django.db.models import F, QuerySet
from django.db.models.functions import Now

from annotation.models import Assignment, AssignmentState, Query
from annotation.models.quality import Review, ReviewState


def lease_held_by(assignment: Assignment) -> QuerySet[Assignment]:
    """Return the question that is shown to the person now; what a program holds in a batch stays with it."""
    return Assignment.objects.filter(
        annotator=assignment.annotator_id, project=assignment.project_id, state=AssignmentState.LEASED, place=0
    )


def lock_questions(assignment: Assignment) -> dict[int, Query]:
    """Lock the assignment's question and the one its person holds, in one order, so that nobody waits in a circle."""
    touched = [assignment.query_id, *lease_held_by(assignment).values_list("query_id", flat=True)]
    return {
        query.pk: query for query in Query.objects.select_for_update(no_key=True).filter(pk__in=touched).order_by("pk")
    }


def end_lease(held: QuerySet[Assignment]) -> None:
    """Give back what the person is shown, since nobody is shown two questions."""
    for query_id in held.values_list("query_id", flat=True):
        Query.objects.filter(pk=query_id).update(open_slots=F("open_slots") + 1)
    held.update(state=AssignmentState.EXPIRED, finished_at=Now())


def give_back(held: QuerySet[Assignment]) -> None:
    """Offer what is held again, whoever holds it, since they may answer no more."""
    waiting = list(held.order_by("query").values_list("query_id", flat=True).distinct())
    for query in Query.objects.select_for_update(no_key=True).filter(pk__in=waiting).order_by("pk"):
        # Questions before leases, as everywhere; what was answered meanwhile stays answered.
        ended = held.filter(query=query).update(state=AssignmentState.EXPIRED, finished_at=Now())
        Query.objects.filter(pk=query.pk).update(open_slots=F("open_slots") + ended)


def free_assigned(*, project_id: int, user_id: int) -> None:
    waiting = Query.objects.filter(project=project_id, assigned_to=user_id)
    locked = waiting.select_for_update(no_key=True).order_by("pk")
    waiting.filter(pk__in=list(locked.values_list("pk", flat=True))).update(assigned_to=None)


def end_reviews(*, project_id: int, user_id: int) -> None:
    """Offer what somebody reviews to others, since they may decide no more, or look anew."""
    held = Review.objects.filter(project=project_id, reviewer=user_id, state=ReviewState.LEASED)
    held.update(state=ReviewState.ENDED, finished_at=Now())


def lease_again(assignment: Assignment, *, seconds: int) -> None:
    Assignment.objects.filter(pk=assignment.pk).update(
        state=AssignmentState.LEASED,
        leased_until=Now() + timedelta(seconds=seconds),
        finished_at=None,
        skip_reason="",
        place=0,
    )
    assignment.refresh_from_db()
