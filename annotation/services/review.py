"""Questions whose answers disagree: one more person is asked, and at last a manager decides."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from annotation.errors import InvalidChoice, InvalidConfiguration
from annotation.label_budget import label_budget
from annotation.models import Consensus, Label, Project, Query, QueryState
from annotation.services import gold, jobs
from privacy.wording import say


def ask_one_more(*, project: Project, query: Query) -> bool:
    """Give a question without a majority to one more person, up to the project's limit; call it with its row locked."""
    if project.overlap_limit is None or query.overlap >= project.overlap_limit:
        return False
    left = label_budget(project).left
    if left is not None and left < 1:
        return False
    Query.objects.filter(pk=query.pk).update(overlap=F("overlap") + 1, open_slots=F("open_slots") + 1)
    return True


def settle(*, project: Project, query_id: int, choice: int, manager: User, keep_as_check: bool = False) -> Consensus:
    """Decide a disputed question; the consensus says who did."""
    if not 0 <= choice < len(project.classes):
        raise InvalidChoice(say("There are {classes} classes to choose from.", classes=len(project.classes)))
    with transaction.atomic():
        query = _locked(project, query_id)
        votes = list(Label.objects.filter(query=query, superseded_at=None).values_list("choice", flat=True))
        consensus = Consensus.objects.create(
            project=project,
            query=query,
            choice=choice,
            votes=len(votes),
            agreeing=votes.count(choice),
            settled_by=manager,
        )
        query.state = QueryState.CLOSED
        query.save(update_fields=["state"])
        if keep_as_check:
            gold.keep_as_check(query=query, choice=choice, owner=manager, answered=len(votes))
        jobs.send_project_changed(project.pk)
    return consensus


def ask_again(*, project: Project, query_id: int) -> Query:
    """Give a disputed question to one more person, whatever the limit."""
    with transaction.atomic():
        query = _locked(project, query_id)
        query.state, query.overlap, query.open_slots = QueryState.OPEN, query.overlap + 1, query.open_slots + 1
        query.save(update_fields=["state", "overlap", "open_slots"])
    return query


def leave_out(*, project: Project, query_id: int) -> Query:
    """Give a disputed question up."""
    with transaction.atomic():
        query = _locked(project, query_id)
        query.state, query.open_slots = QueryState.WITHDRAWN, 0
        query.save(update_fields=["state", "open_slots"])
        jobs.send_project_changed(project.pk)
    return query


def _locked(project: Project, query_id: int) -> Query:
    query = Query.objects.select_for_update(no_key=True).filter(pk=query_id, project=project).first()
    if query is None or query.state != QueryState.DISPUTED:
        raise InvalidConfiguration("This question is not disputed any more.")
    return query
