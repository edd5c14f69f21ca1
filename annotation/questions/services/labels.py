"""Storing answers, and closing a question once they agree."""

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Greatest, Now

from annotation import access
from annotation.budget.label_budget import label_budget
from annotation.errors import AlreadyLabelled, LeaseExpired
from annotation.models import Assignment, AssignmentState, Label, Project, Query, QueryState
from annotation.models.database import fetch_one
from annotation.questions.selectors import agreed_on, refuse_no_answer
from annotation.questions.services import checks as gold
from annotation.questions.services import flags
from annotation.work.services import leases
from annotation.work.services.sending import send_on_commit
from privacy.ledger.entries import broken_rule
from privacy.wording import as_message


def ask_one_more(*, project: Project, query: Query) -> bool:
    """Give a question without a majority to one more person, up to the limit; call it with its row locked."""
    if project.overlap_limit is None or query.overlap >= project.overlap_limit:
        return False
    left = label_budget(project).left
    if left is not None and left < 1:
        return False
    Query.objects.filter(pk=query.pk).update(overlap=F("overlap") + 1, open_slots=F("open_slots") + 1)
    return True


def submit_label(*, assignment: Assignment, choice: int, key: UUID | None = None) -> Label:
    """Store an answer once; `key` names the page that sent it, so that an undone answer stays undone."""
    project = assignment.project
    access.refuse_if_closed(project)
    try:
        return _submit(assignment, choice, key)
    except IntegrityError as error:
        if broken_rule(error) != "annotation_label_within_cap":
            raise
        # A lapsed question of somebody who has answered as many others since.
        raise _no_longer_theirs(assignment) from error


def _no_longer_theirs(assignment: Assignment) -> LeaseExpired:
    return LeaseExpired(as_message("Assignment {pk} is no longer yours.", pk=assignment.pk))


def _submit(assignment: Assignment, choice: int, key: UUID | None) -> Label:
    project = assignment.project
    with transaction.atomic():
        refuse_no_answer(project, choice)
        label, query = _answer(assignment, choice, key)
        if label is None:
            sent = None if key is None else Label.objects.filter(assignment=assignment, key=key).first()
            earlier = sent or _reopen(assignment)
            if earlier is not None:
                return _same_label(earlier, choice)
            label, query = _answer(assignment, choice, key)
        if label is None:
            raise _no_longer_theirs(assignment)
        if query.state == QueryState.GOLD:
            gold.judge_member(project=project, user_id=assignment.annotator_id)
            return label
        votes = [choice] if query.overlap == 1 else current_answers(query)
        if len(votes) == query.overlap and (
            agreed_on(project, votes) is not None or not ask_one_more(project=project, query=query)
        ):
            close_query(project, query, votes)
    return label


def _answer(assignment: Assignment, choice: int, key: UUID | None) -> tuple[Label | None, Query]:
    """End a lease with its label; None without a lease or if this page sent it before. The question is locked."""
    row = fetch_one(
        "SELECT * FROM annotation_answer(%s, %s, %s, %s)", [assignment.pk, assignment.query_id, choice, key]
    )
    assert row is not None
    pk, created_at, supersedes_id, state, overlap, drawn = row
    query = Query(
        pk=assignment.query_id, project=assignment.project, state=state, overlap=overlap, drawn_for_review=drawn
    )
    label = Label(
        pk=pk,
        assignment=assignment,
        query_id=assignment.query_id,
        annotator_id=assignment.annotator_id,
        choice=choice,
        key=key,
        supersedes_id=supersedes_id,
        created_at=created_at,
    )
    return (label if pk is not None else None), query


def _reopen(assignment: Assignment) -> Label | None:
    query = leases.lock_questions(assignment)[assignment.query_id]
    current = Assignment.objects.select_for_update(no_key=True).get(pk=assignment.pk)
    if current.state == AssignmentState.LABELLED:
        return current.labels.get(superseded_at=None)
    if query.state == QueryState.SET_ASIDE:
        raise LeaseExpired("This question was set aside meanwhile; your answer was not stored.")
    if query.state not in (QueryState.OPEN, QueryState.GOLD) or query.open_slots == 0:
        raise LeaseExpired("The time ran out and another person has this question; your answer was not stored.")
    leases.end_lease(leases.lease_held_by(assignment))
    leases.lease_again(current, seconds=assignment.project.lease_seconds)
    Query.objects.filter(pk=query.pk).update(open_slots=F("open_slots") - 1)
    return None


def _same_label(label: Label, choice: int) -> Label:
    if label.choice != choice:
        raise AlreadyLabelled("You answered this question. Undo that answer first.")
    return label


def current_answers(query: Query) -> Sequence[int]:
    given = Label.objects.filter(query=query, superseded_at=None, choice__isnull=False)
    return [choice for choice in given.values_list("choice", flat=True) if choice is not None]


def close_query(project: Project, query: Query, votes: Sequence[int]) -> None:
    """Store the consensus, or that there is none; call it with the row locked. Drawn questions wait for a reviewer."""
    # A drawn question counts as settled at once, so that no time of a training depends on its reviewer.
    agreement = agreed_on(project, votes)
    state = QueryState.CLOSED if agreement else QueryState.DISPUTED
    if agreement and query.drawn_for_review:
        state = QueryState.IN_REVIEW
    settled = (agreement.choice, len(votes), agreement.agreeing) if agreement else (0, len(votes), 0)
    row = fetch_one(
        "SELECT annotation_close(%s, %s, %s, %s, %s, %s, %s)",
        [query.pk, project.pk, state.value, *settled, project.labels_per_release],
    )
    if row and row[0]:
        send_on_commit(settings.PROJECT_CHANGED_TASK, project_id=project.pk)


def skip_assignment(*, assignment: Assignment, reason: str) -> Assignment:
    """Give the question back to others; skipping twice changes nothing."""
    with transaction.atomic():
        query = Query.objects.select_for_update(no_key=True).get(pk=assignment.query_id)
        current = Assignment.objects.select_for_update(no_key=True).get(pk=assignment.pk)
        if current.state == AssignmentState.LABELLED:
            raise AlreadyLabelled("You answered this question. Undo that answer first.")
        if current.state == AssignmentState.LEASED:
            Query.objects.filter(pk=query.pk).update(open_slots=F("open_slots") + 1)
        if current.state != AssignmentState.SKIPPED:
            current.state = AssignmentState.SKIPPED
            current.skip_reason = reason
            current.finished_at = Now()
            current.save(update_fields=["state", "skip_reason", "finished_at"])
            flags.set_aside_if_nobody_answers(project=assignment.project, query=query)
    return current


def withdraw_questions(*, project: Project, round_number: int) -> None:
    """Withdraw what a round asked without consensus; call it in the transaction that trains on the round."""
    left = Query.objects.filter(
        project=project,
        round_number=round_number,
        # What was set aside, too: asked again later, it would be answered after its block was trained on.
        state__in=(QueryState.OPEN, QueryState.DISPUTED, QueryState.SET_ASIDE, QueryState.IN_REVIEW),
    )
    withdrawn = [query.pk for query in left.select_for_update(no_key=True).order_by("pk").only("pk")]
    Query.objects.filter(pk__in=withdrawn).update(state=QueryState.WITHDRAWN, open_slots=0)
    Assignment.objects.filter(query__in=withdrawn, state=AssignmentState.LEASED).update(
        state=AssignmentState.EXPIRED, finished_at=Now()
    )


def mark_labels_used(*, project: Project, last_consensus_id: int) -> None:
    """Fix every consensus up to this one; call it in the transaction that chooses them."""
    # The time fixes what was settled without a consensus: to find an answer fixed would tell that others differ.
    Project.objects.filter(pk=project.pk).update(
        labels_used_through=Greatest("labels_used_through", last_consensus_id), labels_used_at=Now()
    )
