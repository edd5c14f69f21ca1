"""Reviewing: who decides about a question, and what they decide."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from annotation import access
from annotation.choices.randomizers import randomizes
from annotation.errors import InvalidConfiguration, LeaseExpired, RoleRefused, UndoRefused
from annotation.models import Consensus, Label, Oracle, Project, Query, QueryState, Report, ReportKind
from annotation.models.quality import Review, ReviewState
from annotation.models.questions import ANSWERED
from annotation.questions.selectors.answers import agreed_on, counted, refuse_no_answer
from annotation.questions.services import checks as gold
from annotation.questions.services import correcting, labels
from annotation.review.selectors import reviewing
from annotation.work.services import jobs


def settle(*, project: Project, query_id: int, choice: int, person: User, keep_as_check: bool = False) -> Consensus:
    if keep_as_check:
        _refuse_in_front_of_a_crowd(project)
    _refuse_where_chance_settles(project)
    refuse_no_answer(project, choice)
    with transaction.atomic():
        query = lock_reviewed(project, query_id)
        Consensus.objects.filter(query=query).delete()
        votes = list(Label.objects.filter(query=query, superseded_at=None).values_list("choice", flat=True))
        given = [vote for vote in votes if vote is not None]
        agreed = agreed_on(project, given) if given else None
        consensus = Consensus.objects.create(
            project=project,
            query=query,
            choice=choice,
            votes=len(votes),
            agreeing=sum(vote is not None and counted(project, vote) == counted(project, choice) for vote in votes),
            settled_by=person,
            changed=None if agreed is None else agreed.choice != counted(project, choice),
        )
        query.state = QueryState.CLOSED
        query.save(update_fields=["state"])
        if keep_as_check:
            gold.keep_as_check(query=query, choice=choice, owner=person, answered=len(votes))
        jobs.send_project_changed(project.pk)
    return consensus


def ask_beyond_overlap(*, project: Project, query_id: int) -> Query:
    _refuse_in_front_of_a_crowd(project)
    with transaction.atomic():
        query = _locked(project, query_id)
        query.state, query.overlap, query.open_slots = QueryState.OPEN, query.overlap + 1, query.open_slots + 1
        query.save(update_fields=["state", "overlap", "open_slots"])
    return query


def leave_out_disputed(*, project: Project, query_id: int) -> Query:
    _refuse_where_chance_settles(project)
    with transaction.atomic():
        query = _locked(project, query_id)
        query.state, query.open_slots = QueryState.WITHDRAWN, 0
        query.save(update_fields=["state", "open_slots"])
        jobs.send_project_changed(project.pk)
    return query


def set_aside_in_review(*, project: Project, query_id: int) -> Query:
    _refuse_in_front_of_a_crowd(project)
    with transaction.atomic():
        query = lock_reviewed(project, query_id)
        Consensus.objects.filter(query=query).delete()
        query.state, query.open_slots = QueryState.SET_ASIDE, 0
        query.save(update_fields=["state", "open_slots"])
        jobs.send_project_changed(project.pk)
    return query


def lock_reviewed(project: Project, query_id: int) -> Query:
    """Lock a question that may be decided: disputed, drawn, or agreed on and not used by a training."""
    # Whoever starts a training locks this row first, too, so what is used cannot move under us.
    locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    access.refuse_if_closed(locked)
    query = Query.objects.select_for_update(no_key=True).filter(pk=query_id, project=project).first()
    if query is None or query.state not in ANSWERED:
        raise InvalidConfiguration("This question is not disputed any more.")
    if query.state == QueryState.CLOSED:
        agreed = Consensus.objects.filter(query=query, settled_by=None).first()
        if agreed is None:
            raise InvalidConfiguration("This question is not disputed any more.")
        if agreed.pk <= locked.labels_used_through:
            raise UndoRefused("This answer stays: a training may have used it.")
    return query


def _refuse_in_front_of_a_crowd(project: Project) -> None:
    if project.oracle == Oracle.CROWD:
        raise InvalidConfiguration(
            "In front of a crowd a disputed question is shown to nobody again: they would know that answers differ."
        )


def _refuse_where_chance_settles(project: Project) -> None:
    if randomizes(project.settings):
        raise InvalidConfiguration(
            "Where answers are randomised a coin decides between classes named equally often, and nobody else."
        )


def _locked(project: Project, query_id: int) -> Query:
    query = Query.objects.select_for_update(no_key=True).filter(pk=query_id, project=project).first()
    if query is None or query.state != QueryState.DISPUTED:
        raise InvalidConfiguration("This question is not disputed any more.")
    return query


# Others may take what one is about to take.
TRIES = 5


def claim_review(*, project: Project, person: User) -> Review | None:
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
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        consensus = settle(
            project=project, query_id=query_id, choice=choice, person=person, keep_as_check=keep_as_check
        )
        _finish(project, person, query_id, ReviewState.SETTLED)
    return consensus


def return_reviewed(*, project: Project, person: User, query_id: int, comment: str) -> None:
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        if not correcting.send_back(project=project, query_ids=[query_id], comment=comment):
            raise UndoRefused("This answer stays: a training may have used it.")
        _finish(project, person, query_id, ReviewState.RETURNED)


def set_aside_reviewed(*, project: Project, person: User, query_id: int) -> None:
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        set_aside_in_review(project=project, query_id=query_id)
        _finish(project, person, query_id, ReviewState.SET_ASIDE)


def skip_review(*, project: Project, person: User, query_id: int) -> None:
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        _finish(project, person, query_id, ReviewState.SKIPPED)


def undo_review(*, project: Project, person: User) -> Review:
    """Take the last decision back and lease its question again, if no training has used it."""
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
