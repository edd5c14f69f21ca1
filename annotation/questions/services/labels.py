"""Storing answers, and closing a question once they agree."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest, Now

from annotation import access
from annotation.budget.label_budget import label_budget
from annotation.errors import AlreadyLabelled, LeaseExpired
from annotation.models import Assignment, AssignmentState, Label, Project, Query, QueryState
from annotation.models.prepared import fetch_one
from annotation.questions.selectors.answers import agreed_on, refuse_no_answer
from annotation.questions.services import checks as gold
from annotation.questions.services import flags
from annotation.work.services import leases
from annotation.work.services.sending import send_on_commit
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


# The click itself. The question's lock makes the answers of one question come one after another, so that whoever gives
# the last one sees all others.
GIVEN = """
WITH question AS (
    SELECT id FROM annotation_query WHERE id = %(query)s FOR NO KEY UPDATE
), ended AS (
    UPDATE annotation_assignment assignment SET state = 'labelled', finished_at = now()
    FROM question
    WHERE assignment.id = %(assignment)s AND assignment.state = 'leased' AND (
        %(key)s::uuid IS NULL OR NOT EXISTS (
            SELECT 1 FROM annotation_label sent WHERE sent.assignment_id = %(assignment)s AND sent.key = %(key)s
        )
    )
    RETURNING assignment.id, assignment.query_id, assignment.annotator_id
), given AS (
    INSERT INTO annotation_label (assignment_id, query_id, annotator_id, choice, key, supersedes_id, created_at)
    SELECT ended.id, ended.query_id, ended.annotator_id, %(choice)s, %(key)s,
           (SELECT max(earlier.id) FROM annotation_label earlier WHERE earlier.assignment_id = ended.id), now()
    FROM ended
    RETURNING id, created_at, supersedes_id
)"""

# Closing a question also says whether this may be the answer somebody waits for: enough new ones for a training, or
# the last of a round. Counting those of a long training at each answer would cost more than the answer: there it is
# done at about one in a hundredth of them, and the beat finds what that misses. Nothing is left of a round when no slot
# is free and nobody holds a question of it; the order keeps the first look on the queue's index. What has no majority
# counts like what has one: a training that began seconds later would tell which it was. Old ones count, too, and a look
# too many changes nothing.
SOMEBODY_WAITS = """
    ((SELECT free.id FROM annotation_query free
      WHERE free.project_id = %(project)s AND free.state = 'open' AND free.open_slots > 0 AND free.id <> %(query)s
      ORDER BY free.priority, free.id LIMIT 1) IS NULL
     AND NOT EXISTS (
         SELECT 1 FROM annotation_assignment held JOIN annotation_query other ON other.id = held.query_id
         WHERE held.project_id = %(project)s AND held.state = 'leased' AND other.state = 'open'
           AND other.id <> %(query)s))
    OR (random() * %(enough)s::integer < 100
        AND %(enough)s::integer <= 1 + (
            SELECT count(*) FROM (
                SELECT 1 FROM annotation_consensus
                WHERE project_id = %(project)s AND id > project.labels_used_through
                LIMIT %(enough)s::integer
            ) unused) + (
            SELECT count(*) FROM (
                SELECT 1 FROM annotation_query
                WHERE project_id = %(project)s AND state IN ('disputed', 'set_aside', 'withdrawn', 'in_review')
                LIMIT %(enough)s::integer
            ) given_up))"""

ANSWER = f"{GIVEN} SELECT id, created_at, supersedes_id FROM given"  # noqa: S608 - no values

# Where one answer is asked for, it is what was agreed on: all in one statement, and one journey to the database.
ONLY_ANSWER = f"""{GIVEN}, stored AS (
    INSERT INTO annotation_consensus (project_id, query_id, choice, votes, agreeing, created_at)
    SELECT %(project)s, %(query)s, %(choice)s, 1, 1, now() FROM given
), closed AS (
    UPDATE annotation_query query SET state = 'closed' FROM given WHERE query.id = %(query)s
)
SELECT given.id, given.created_at, given.supersedes_id, {SOMEBODY_WAITS}
FROM given JOIN annotation_project project ON project.id = %(project)s
"""  # noqa: S608 - no values

CLOSE = f"""
WITH stored AS (
    INSERT INTO annotation_consensus (project_id, query_id, choice, votes, agreeing, created_at)
    SELECT %(project)s, %(query)s, %(choice)s, %(votes)s, %(agreeing)s, now() WHERE %(state)s = 'closed'
), closed AS (
    UPDATE annotation_query SET state = %(state)s WHERE id = %(query)s
)
SELECT {SOMEBODY_WAITS}
FROM annotation_project project WHERE project.id = %(project)s
"""  # noqa: S608 - no values


def submit_label(*, assignment: Assignment, choice: int, key: UUID | None = None) -> Label:
    """Store an answer once; `key` names the page that sent it, so that an undone answer stays undone."""
    project = assignment.project
    access.refuse_if_closed(project)
    refuse_no_answer(project, choice)
    asked = assignment.query
    if asked.state == QueryState.OPEN and asked.overlap == 1 and not asked.drawn_for_review:
        label = _answer(assignment, choice, key, only=True)
        if label is not None:
            return label
    with transaction.atomic():
        label = _answer(assignment, choice, key)
        if label is None:
            earlier = _sent_before(assignment, key) or _reopen(assignment)
            if earlier is not None:
                return _same_label(earlier, choice)
            label = _answer(assignment, choice, key)
        if label is None:
            raise LeaseExpired(as_message("Assignment {pk} is no longer yours.", pk=assignment.pk))
        query = assignment.query
        if query.state == QueryState.GOLD:
            gold.judge_member(project=project, user_id=assignment.annotator_id)
            return label
        votes = [choice] if query.overlap == 1 else current_answers(query)
        if len(votes) == query.overlap and (
            agreed_on(project, votes) is not None or not ask_one_more(project=project, query=query)
        ):
            close_query(project, query, votes)
    return label


def _answer(assignment: Assignment, choice: int, key: UUID | None, *, only: bool = False) -> Label | None:
    """End a lease with its label; None without a lease or if this page sent it before."""
    values: dict[str, Any] = {
        "assignment": assignment.pk,
        "query": assignment.query_id,
        "choice": choice,
        "key": key,
    }
    if only:
        values |= {"project": assignment.project_id, "enough": assignment.project.labels_per_release}
    row = fetch_one(ONLY_ANSWER if only else ANSWER, values)
    if row is None:
        return None
    pk, created_at, supersedes_id, *somebody_waits = row
    if any(somebody_waits):
        send_on_commit(settings.PROJECT_CHANGED_TASK, project_id=assignment.project_id)
    return Label(
        pk=pk,
        assignment=assignment,
        query_id=assignment.query_id,
        annotator_id=assignment.annotator_id,
        choice=choice,
        key=key,
        supersedes_id=supersedes_id,
        created_at=created_at,
    )


def _sent_before(assignment: Assignment, key: UUID | None) -> Label | None:
    return None if key is None else Label.objects.filter(assignment=assignment, key=key).first()


def _reopen(assignment: Assignment) -> Label | None:
    """Return the label the assignment already has, or lease it again if its slot is still free."""
    query = leases.lock_questions(assignment)[assignment.query_id]
    current = Assignment.objects.select_for_update(no_key=True).get(pk=assignment.pk)
    if current.state == AssignmentState.LABELLED:
        return current.labels.get(superseded_at=None)
    if query.state == QueryState.SET_ASIDE:
        raise LeaseExpired("This question was set aside meanwhile for a manager to look at; nothing was stored.")
    if query.state not in (QueryState.OPEN, QueryState.GOLD) or query.open_slots == 0:
        raise LeaseExpired(
            "The time for this question ran out and somebody else has it now, so your answer was not stored."
        )
    # One more person may have been asked since the page was loaded.
    assignment.query.overlap = query.overlap
    leases.end_lease(leases.lease_held_by(assignment))
    leases.lease_again(current, seconds=assignment.project.lease_seconds)
    Query.objects.filter(pk=query.pk).update(open_slots=F("open_slots") - 1)
    return None


def _same_label(label: Label, choice: int) -> Label:
    if label.choice != choice:
        raise AlreadyLabelled("You have answered this question before, with another class. Undo that answer first.")
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
    values: dict[str, Any] = {
        "project": project.pk,
        "enough": project.labels_per_release,
        "query": query.pk,
        "state": state.value,
        "choice": agreement.choice if agreement else 0,
        "votes": len(votes),
        "agreeing": agreement.agreeing if agreement else 0,
    }
    row = fetch_one(CLOSE, values)
    if row and row[0]:
        send_on_commit(settings.PROJECT_CHANGED_TASK, project_id=project.pk)


def skip_assignment(*, assignment: Assignment, reason: str) -> Assignment:
    """Give the question back to others; skipping twice changes nothing."""
    with transaction.atomic():
        query = Query.objects.select_for_update(no_key=True).get(pk=assignment.query_id)
        current = Assignment.objects.select_for_update(no_key=True).get(pk=assignment.pk)
        if current.state == AssignmentState.LABELLED:
            raise AlreadyLabelled("You have answered this question before. Undo that answer first.")
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
