"""Questions whose answers disagree: somebody decides, or asks one more person.

Locks are taken project first, then question, as everywhere.
"""

from django.contrib.auth.models import User
from django.db import transaction

from annotation import access
from annotation.answers.selectors import agreed_on, counted, refuse_no_answer
from annotation.checks import services as gold
from annotation.choices.answers_unit import randomizes
from annotation.errors import InvalidConfiguration, UndoRefused
from annotation.models import Consensus, Label, Oracle, Project, Query, QueryState
from annotation.models.questions import ANSWERED
from annotation.work.services import jobs


def settle(*, project: Project, query_id: int, choice: int, person: User, keep_as_check: bool = False) -> Consensus:
    """Decide a question that is disputed, or agreed on and not used yet; the consensus says who did."""
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
    """Give a disputed question to one more person, whatever the limit."""
    _refuse_in_front_of_a_crowd(project)
    with transaction.atomic():
        query = _locked(project, query_id)
        query.state, query.overlap, query.open_slots = QueryState.OPEN, query.overlap + 1, query.open_slots + 1
        query.save(update_fields=["state", "overlap", "open_slots"])
    return query


def leave_out_disputed(*, project: Project, query_id: int) -> Query:
    """Give a disputed question up."""
    _refuse_where_chance_settles(project)
    with transaction.atomic():
        query = _locked(project, query_id)
        query.state, query.open_slots = QueryState.WITHDRAWN, 0
        query.save(update_fields=["state", "open_slots"])
        jobs.send_project_changed(project.pk)
    return query


def set_aside_in_review(*, project: Project, query_id: int) -> Query:
    """Take a question with its answers out of what is learned from, for a manager to look at."""
    _refuse_in_front_of_a_crowd(project)
    with transaction.atomic():
        query = lock_reviewed(project, query_id)
        Consensus.objects.filter(query=query).delete()
        query.state, query.open_slots = QueryState.SET_ASIDE, 0
        query.save(update_fields=["state", "open_slots"])
        jobs.send_project_changed(project.pk)
    return query


def lock_reviewed(project: Project, query_id: int) -> Query:
    """Lock a question that somebody may decide: disputed, drawn, or agreed on and used by no training."""
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
    """Keep a question's response a function of its own answers: what a manager decides would not be charged."""
    if randomizes(project.settings):
        raise InvalidConfiguration(
            "Where answers are randomised a coin decides between classes named equally often, and nobody else."
        )


def _locked(project: Project, query_id: int) -> Query:
    query = Query.objects.select_for_update(no_key=True).filter(pk=query_id, project=project).first()
    if query is None or query.state != QueryState.DISPUTED:
        raise InvalidConfiguration("This question is not disputed any more.")
    return query
