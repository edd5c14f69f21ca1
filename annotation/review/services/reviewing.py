"""Reviewing one question after the other: taking it, deciding, and taking the last decision back.

Locks are taken project first, then question, so that nobody waits in a circle.
"""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from annotation import access
from annotation.errors import InvalidConfiguration, LeaseExpired, RoleRefused, UndoRefused
from annotation.models import Consensus, Project, Query, QueryState, Report, ReportKind
from annotation.models.reviews import Review, ReviewState
from annotation.questions.services import correcting, labels
from annotation.review import selectors as reviewing
from annotation.review.services import disputes

# Others may take what one is about to take.
TRIES = 5


def claim_review(*, project: Project, person: User) -> Review | None:
    """Return the question the person reviews, else lease them the next; None where nothing waits for them."""
    leased = Review.objects.filter(project=project, state=ReviewState.LEASED)
    ended = {"state": ReviewState.ENDED, "finished_at": Now()}
    for _ in range(TRIES):
        leased.filter(leased_until__lt=Now()).exclude(reviewer=person).update(**ended)
        mine = reviewing.queue_of(project, person)
        own = leased.filter(reviewer=person).select_related("query__record", "query__project").first()
        if own is not None and mine.filter(pk=own.query_id).exists():
            leased.filter(pk=own.pk).update(leased_until=_until(project))
            return own
        leased.filter(reviewer=person).update(**ended)
        chosen = mine.exclude(pk__in=leased.values("query")).first()
        if chosen is None:
            return None
        # Somebody else may have it by now, or oneself another one on a second page: then it is looked for again.
        lease = Review(project=project, query=chosen, reviewer=person, leased_until=_until(project))
        Review.objects.bulk_create([lease], ignore_conflicts=True)
    return None


def settle_reviewed(
    *, project: Project, person: User, query_id: int, choice: int, keep_as_check: bool = False
) -> Consensus:
    """Decide which answer counts."""
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        consensus = disputes.settle(
            project=project, query_id=query_id, choice=choice, person=person, keep_as_check=keep_as_check
        )
        _finish(project, person, query_id, ReviewState.SETTLED)
    return consensus


def return_reviewed(*, project: Project, person: User, query_id: int, comment: str) -> None:
    """Send a question back to those who answered it, with a comment."""
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        if not correcting.send_back(project=project, query_ids=[query_id], comment=comment):
            raise UndoRefused("This answer stays: a training may have used it.")
        _finish(project, person, query_id, ReviewState.RETURNED)


def set_aside_reviewed(*, project: Project, person: User, query_id: int) -> None:
    """Leave a question to a manager."""
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        disputes.set_aside_in_review(project=project, query_id=query_id)
        _finish(project, person, query_id, ReviewState.SET_ASIDE)


def skip_review(*, project: Project, person: User, query_id: int) -> None:
    """Leave a question to somebody else; to oneself it comes again last."""
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        _finish(project, person, query_id, ReviewState.SKIPPED)


def undo_review(*, project: Project, person: User) -> Review:
    """Take the person's last decision back and lease its question to them again, if no training has used it."""
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        access.refuse_if_closed(locked)
        last = reviewing.undoable_review(project, person)
        if last is None:
            raise UndoRefused("There is no decision of the last ten minutes left to take back.")
        query = Query.objects.select_for_update(no_key=True).get(pk=last.query_id)
        _take_back(locked, query, last)
        Review.objects.filter(pk=last.pk).update(state=ReviewState.ENDED)
        held = Review.objects.filter(project=project, state=ReviewState.LEASED)
        if held.filter(query=query).exclude(reviewer=person).exists():
            raise UndoRefused("Somebody else has this question now, so it stays skipped.")
        held.filter(reviewer=person).update(state=ReviewState.ENDED, finished_at=Now())
        return Review.objects.create(project=project, query=query, reviewer=person, leased_until=_until(project))


def _take_back(project: Project, query: Query, last: Review) -> None:
    if last.state == ReviewState.RETURNED:
        sent = Report.objects.filter(query=query, kind=ReportKind.RETURNED, resolved_at=None)
        if not sent.update(resolved_at=Now(), resolved_by=last.reviewer_id):
            raise UndoRefused("The annotator has looked at it again already.")
    elif last.state == ReviewState.SET_ASIDE:
        _agree_as_before(project, query, QueryState.SET_ASIDE)
    elif last.state == ReviewState.SETTLED:
        decided = Consensus.objects.filter(query=query, settled_by=last.reviewer_id)
        if decided.filter(pk__lte=project.labels_used_through).exists():
            raise UndoRefused("A training has used this answer, so it stays.")
        if query.state != QueryState.CLOSED or not decided.exists():
            raise UndoRefused("Something else was decided about this question meanwhile.")
        decided.delete()
        _agree_as_before(project, query, QueryState.CLOSED)


def _agree_as_before(project: Project, query: Query, state: QueryState) -> None:
    answers = labels.current_answers(query)
    if query.state != state or not answers:
        raise UndoRefused("Something else was decided about this question meanwhile.")
    labels.close_query(project, query, answers)


def _refuse_others(project: Project, person: User, query_id: int) -> None:
    """Refuse to decide what somebody else reviews at this moment, or what one answered oneself."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    held = Review.objects.filter(query=query_id, state=ReviewState.LEASED, leased_until__gte=Now())
    if held.exclude(reviewer=person).exists():
        raise LeaseExpired("Somebody else reviews this question now, so nothing was stored.")
    if reviewing.queue_of(project, person).filter(pk=query_id).exists():
        return
    if reviewing.waiting_for_review(project).filter(pk=query_id).exists():
        raise RoleRefused("Nobody reviews their own answers.")
    raise InvalidConfiguration("This question does not wait for review any more.")


def _finish(project: Project, person: User, query_id: int, state: ReviewState) -> None:
    own = Review.objects.filter(query=query_id, reviewer=person, state=ReviewState.LEASED)
    if not own.update(state=state, finished_at=Now()):
        Review.objects.create(
            project=project, query_id=query_id, reviewer=person, state=state, leased_until=Now(), finished_at=Now()
        )


def _until(project: Project) -> Any:
    return Now() + timedelta(seconds=project.lease_seconds)
