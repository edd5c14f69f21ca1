"""Changing an answer later: by whoever gave it, on their own, or because a manager sent it back with a comment.

Locks are taken project first, then question, then assignment, so that nobody waits in a circle.
"""

from collections.abc import Sequence

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models.functions import Now

from annotation import access, selectors
from annotation.answers.selectors import agreed_on, refuse_no_answer
from annotation.checks import services as gold
from annotation.errors import InvalidConfiguration, UndoRefused
from annotation.models import (
    Assignment,
    AssignmentState,
    Consensus,
    Label,
    Oracle,
    Project,
    Query,
    QueryState,
    Report,
    ReportKind,
)
from annotation.models.questions import ANSWERED
from annotation.questions.services import labels, overlap
from annotation.reports.services.reporting import MAX_COMMENT_LENGTH
from privacy.choices import Kind


def correct_answer(*, project: Project, user: AbstractBaseUser, query_id: int, choice: int) -> Label:
    """Put another answer in the place of the person's own, or confirm it; no training has used it.

    What was agreed on is worked out anew, as if the answer had been this one from the beginning.
    """
    refuse_no_answer(project, choice)
    with transaction.atomic():
        # Whoever starts a training locks this row first, too, so what is used cannot move under us.
        access.refuse_if_closed(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        query = Query.objects.select_for_update(no_key=True).filter(pk=query_id, project=project).first()
        own = selectors.correctable_assignments(user.pk).filter(project=project, query=query_id).first()
        if query is None or own is None:
            raise UndoRefused("This answer stays: a training may have used it.")
        Assignment.objects.select_for_update(no_key=True).get(pk=own.pk)
        Report.objects.filter(query=query, annotator=user.pk, kind=ReportKind.RETURNED, resolved_at=None).update(
            resolved_at=Now(), resolved_by=user.pk
        )
        before = own.labels.get(superseded_at=None)
        if before.choice == choice:
            return before
        Label.objects.filter(pk=before.pk).update(superseded_at=Now())
        label = Label.objects.create(
            assignment=own, query=query, annotator_id=own.annotator_id, choice=choice, supersedes=before
        )
        if query.state == QueryState.GOLD:
            gold.judge_member(project=project, user_id=own.annotator_id)
        elif query.state in ANSWERED:
            _agree_anew(project, query)
    return label


def _agree_anew(project: Project, query: Query) -> None:
    if Consensus.objects.filter(query=query, settled_by__isnull=False).exists():
        return
    Consensus.objects.filter(query=query).delete()
    votes = labels.current_answers(query)
    if agreed_on(project, votes) is None and overlap.ask_one_more(project=project, query=query):
        Query.objects.filter(pk=query.pk).update(state=QueryState.OPEN)
    else:
        labels.close_query(project, query, votes)


def send_back(*, project: Project, query_ids: Sequence[int], comment: str) -> list[int]:
    """Ask those who answered some questions to look again, with a comment; return the questions that were sent back.

    Their answers stand until they change them. What a training used is left alone.
    """
    if project.oracle == Oracle.CROWD:
        raise InvalidConfiguration("In front of a crowd nothing is sent back: they would know that answers differ.")
    if project.settings.get(Kind.RANDOMIZER.key):
        raise InvalidConfiguration("Where answers are randomised each is given once, and nobody asks for another.")
    if not comment.strip():
        raise InvalidConfiguration("Say in a comment what to look at again.")
    sent: set[int] = set()
    with transaction.atomic():
        access.refuse_if_closed(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        answered = Assignment.objects.filter(project=project, query__in=query_ids, state=AssignmentState.LABELLED)
        for person in sorted(set(answered.values_list("annotator", flat=True))):
            own = selectors.correctable_assignments(person).filter(project=project, query__in=query_ids)
            own = own.exclude(query__state=QueryState.GOLD)
            for assignment in own:
                Report.objects.get_or_create(
                    query_id=assignment.query_id,
                    annotator_id=person,
                    kind=ReportKind.RETURNED,
                    resolved_at=None,
                    defaults={"project": project, "comment": comment.strip()[:MAX_COMMENT_LENGTH]},
                )
                sent.add(assignment.query_id)
    return sorted(sent)
