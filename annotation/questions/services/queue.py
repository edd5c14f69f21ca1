"""The queue: opening questions, leasing them, returning lapsed leases."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.utils import timezone
from numpy.typing import NDArray

from annotation import selectors
from annotation.budget import label_budget
from annotation.budget.charges import budget_is_spent
from annotation.errors import InvalidConfiguration
from annotation.models import (
    Assignment,
    AssignmentState,
    Consensus,
    Membership,
    Oracle,
    Project,
    ProjectState,
    Query,
    QueryState,
    Role,
)
from annotation.models.database import Columns, fetch_one
from annotation.models.questions import FURTHER_ANSWERS, MOST_CLAIMED
from annotation.questions import work_limits
from annotation.questions.work_limits import WorkLimit
from privacy.mechanisms.randomness import SecureRandom
from privacy.wording import in_english

# Ranks of a round stay below this, so a later round never overtakes an earlier one.
PRIORITY_PER_ROUND = 10**9
CLAIM_ATTEMPTS = 3
# A block of a large pool is opened in several statements of one transaction.
OPENED_AT_ONCE = 100_000
# A round of so many questions changes what the planner should know of the table.
COUNTED_FROM = 1000

# What a reviewer sees first is drawn before anybody answers, by a coin that no record and no answer moves.
# An empty slot is chosen like any other and asks nobody. The lock waits for whoever empties records at this moment.
# Each record is looked up by its id: statistics taken while an upload came in say that there are none, and a join might
# then go through all of them for each question.
OPEN_RECORDS = """
INSERT INTO annotation_query
    (project_id, record_id, state, round_number, priority, overlap, open_slots, drawn_for_review,
     opened_at)
SELECT %(project)s, record.id, CASE WHEN record.emptied THEN 'withdrawn' ELSE 'open' END, %(round)s,
       %(base)s + asked.rank - 1, %(overlap)s, CASE WHEN record.emptied THEN 0 ELSE %(overlap)s END,
       random() < %(review_share)s, now()
FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS asked (id, rank)
CROSS JOIN LATERAL (
    SELECT found.id, found.dataset_id, found.emptied FROM annotation_record found WHERE found.id = asked.id FOR SHARE
) record
JOIN annotation_dataset dataset ON dataset.id = record.dataset_id
WHERE dataset.project_id = %(project)s AND dataset.role = 'pool' AND dataset.state = 'ready'
ORDER BY asked.rank
"""

OPEN_CANDIDATES = """
UPDATE annotation_query query
SET state = 'open', round_number = %(round)s, priority = %(base)s + asked.rank - 1,
    overlap = %(overlap)s, open_slots = %(overlap)s, opened_at = now()
FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS asked (id, rank)
WHERE query.id = asked.id AND query.project_id = %(project)s AND query.state = 'unasked'
"""

ASSIGNMENT = Columns(Assignment, "(claimed.held)")
# Whose record it is and how many slots are left is nobody's business at the page, and the latter has just changed.
QUERY = Columns(Query, "query", without=("open_slots", "noisy_count", "assigned_to_id", "opened_at"))
CLAIM = f"""
SELECT {ASSIGNMENT.sql}, {QUERY.sql}, {selectors.RECORD.sql},
    claimed.was_chosen, claimed.done_today, claimed.an_hour, claimed.waiting, claimed.guidelines_seen
FROM annotation_claim(
    %(project)s, %(user)s, %(id)s, %(seconds)s, %(among)s, %(noting)s, %(checking)s,
    %(today)s, %(pace_minutes)s, %(pace_from)s, %(place)s
) claimed
LEFT JOIN annotation_query query ON query.id = (claimed.held).query_id
LEFT JOIN LATERAL annotation_asked_record(query.record_id) record ON true
"""  # noqa: S608 - names of columns, no values

PROJECT = Columns(Project, "project")
# As `selectors.assignments_of`, which takes the ORM longer to write than the database to answer.
HELD = f"""
SELECT {ASSIGNMENT.sql.replace("(claimed.held)", "held")}, {PROJECT.sql}
FROM annotation_assignment held JOIN annotation_project project ON project.id = held.project_id
JOIN annotation_membership member ON member.project_id = project.id AND member.user_id = held.annotator_id
WHERE held.id = %s AND held.annotator_id = %s AND project.state IN ('active', 'paused') AND member.role = 'annotator'
"""  # noqa: S608 - names of columns, no values

# An encounter names the record; the database puts its contributor in that place.
NOTE_ALL_ENCOUNTERS = """
INSERT INTO annotation_encounter (project_id, annotator_id, contributor)
SELECT DISTINCT assignment.project_id, assignment.annotator_id, int8send(query.record_id)
FROM annotation_assignment assignment
JOIN annotation_query query ON query.id = assignment.query_id
WHERE assignment.project_id = %(project)s AND query.record_id IS NOT NULL
ON CONFLICT DO NOTHING
"""

# Locks are taken question first, as everywhere, and skipped where somebody answers at this moment.
RETURN_EXPIRED = """
WITH lapsed AS (
    SELECT assignment.id, assignment.query_id
    FROM annotation_assignment assignment JOIN annotation_query query ON query.id = assignment.query_id
    WHERE assignment.state = 'leased' AND assignment.leased_until < now()
    FOR NO KEY UPDATE OF query, assignment SKIP LOCKED
), ended AS (
    UPDATE annotation_assignment assignment SET state = 'expired', finished_at = now()
    FROM lapsed WHERE assignment.id = lapsed.id
), freed AS (
    UPDATE annotation_query query SET open_slots = query.open_slots + per_query.leases
    FROM (SELECT query_id, count(*) AS leases FROM lapsed GROUP BY query_id) per_query
    WHERE query.id = per_query.query_id
)
SELECT count(*) FROM lapsed
"""


class QueueState(StrEnum):
    NOT_MEMBER = "not_member"
    PAUSED = "paused"
    PERSON_PAUSED = "person_paused"
    QUIET_HOURS = "quiet_hours"
    ANSWERS_PER_PERSON = "answers_per_person"
    ANSWERS_PER_DAY = "answers_per_day"
    ENCOUNTERS = "encounters"
    PROTECTED_ANSWERS = "protected_answers"
    WAITING_FOR_FIRST = "waiting_for_first"
    ANSWERED_ALL = "answered_all"
    LABELS_SPENT = "labels_spent"
    BUDGET_SPENT = "budget_spent"
    MORE_COMING = "more_coming"


def open_queries(
    *,
    project: Project,
    round_number: int,
    record_ids: Sequence[int] | NDArray[np.int64] | None = None,
    query_ids: Sequence[int] | NDArray[np.int64] | None = None,
    overlap: int | None = None,
) -> int:
    """Ask records (trusted) or candidates (crowd) in this order; all of them or, refusing, none."""
    trusted = project.oracle == Oracle.TRUSTED
    ids = record_ids if trusted else query_ids
    if ids is None or (query_ids if trusted else record_ids) is not None:
        raise InvalidConfiguration(
            in_english("A trusted project asks records, a crowd project only what its gate let through.")
        )
    values: dict[str, Any] = {
        "project": project.pk,
        "round": round_number,
        "overlap": overlap or project.overlap,
        "review_share": project.review_share,
    }
    opened = 0
    with transaction.atomic(), connection.cursor() as cursor:
        for start in range(0, len(ids), OPENED_AT_ONCE):
            values["base"] = round_number * PRIORITY_PER_ROUND + start
            values["ids"] = [int(identifier) for identifier in ids[start : start + OPENED_AT_ONCE]]
            cursor.execute(OPEN_RECORDS if trusted else OPEN_CANDIDATES, values)
            opened += cursor.rowcount
        if opened != len(ids):
            raise InvalidConfiguration(f"Only {opened} of {len(ids)} questions may be asked in project {project.pk}.")
    if opened >= COUNTED_FROM:
        transaction.on_commit(_count_questions, robust=True)
    return opened


def _count_questions() -> None:
    """Refresh the planner's statistics of the question table; autovacuum may come a minute later."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT annotation_count_questions()")


def held_by(user: AbstractBaseUser | AnonymousUser, assignment_id: UUID) -> Assignment | None:
    row = fetch_one(HELD, [assignment_id, user.pk])
    if row is None:
        return None
    values = iter(row)
    assignment = ASSIGNMENT.build(values)
    assert assignment is not None
    assignment.project = PROJECT.build(values)  # type: ignore[assignment]  # an inner join
    return assignment


def claim_next(*, project: Project, user: AbstractBaseUser, place: int = 0) -> Assignment | None:
    """Return the question the person holds or lease the next; membership is checked by the caller."""
    if project.state != ProjectState.ACTIVE:
        return None
    limit = work_limits.limit_reached(project, user, place=place)
    if limit is not None and limit not in work_limits.MAY_STILL_BE_ASKED:
        return None
    for _ in range(CLAIM_ATTEMPTS):
        assignment, somebody_was_faster = _claim(project, user, limit, place)
        if not somebody_was_faster:
            return assignment
    return None


def claim_several(*, project: Project, user: AbstractBaseUser, most: int) -> list[Assignment]:
    """Return up to `most` questions in the places of a batch: those the person holds there, and the next for the rest.

    Each is claimed as if the others were answered, so no limit of a person's work is passed by holding many.
    """
    places = range(1, min(most, MOST_CLAIMED) + 1)
    found: list[Assignment] = []
    with transaction.atomic():
        # Two batches of one person come one after the other, so that each counts what the other holds.
        as_annotator = Membership.objects.filter(project=project, user=user.pk, role=Role.ANNOTATOR)
        list(as_annotator.select_for_update(no_key=True))
        leased = Assignment.objects.filter(project=project, annotator=user.pk, state=AssignmentState.LEASED)
        held = set(leased.filter(place__in=places).values_list("place", flat=True))
        none_left = False
        for place in places:
            if none_left and place not in held:
                continue
            claimed = claim_next(project=project, user=user, place=place)
            none_left = none_left or claimed is None
            found += [] if claimed is None else [claimed]
    return found


def _claim(
    project: Project, user: AbstractBaseUser, limit: WorkLimit | None, place: int
) -> tuple[Assignment | None, bool]:
    """Try once; the flag says that a second claim of the same person came in between."""
    crowd = project.oracle == Oracle.CROWD
    among = "any"
    if limit is not None:
        among = "answered" if limit == WorkLimit.PROTECTED_ANSWERS else "texts" if crowd else "contributors"
    values: dict[str, Any] = {
        "project": project.pk,
        "user": user.pk,
        "id": uuid4(),
        "seconds": project.lease_seconds,
        "among": among,
        # What a gate let through is counted by assignment, so there is nothing to note.
        "noting": project.encounter_limit is not None and not crowd,
        "checking": limit is None and SecureRandom().random() < project.gold_share,
        "today": selectors.midnight(),
        "pace_minutes": selectors.PACE_MINUTES,
        "pace_from": selectors.PACE_FROM_ANSWERS,
        "place": place,
    }
    try:
        row = iter(fetch_one(CLAIM, values) or ())
    except IntegrityError:
        # The person leased another question meanwhile: `annotation_assignment_one_lease`.
        if connection.in_atomic_block:
            raise
        return None, True
    assignment, query, record = ASSIGNMENT.build(row), QUERY.build(row), selectors.RECORD.build(row)
    was_chosen, done_today, an_hour, waiting, guidelines_seen = row
    if assignment is None or query is None:
        return None, was_chosen
    query.record = record
    assignment.project, assignment.query = project, query
    vars(assignment).update(done_today=done_today, an_hour=an_hour, waiting=waiting, guidelines_seen=guidelines_seen)
    return assignment, False


def note_encounters(project: Project) -> None:
    """Note whom each person has met so far; nothing is noted while a project has no limit."""
    if project.oracle != Oracle.CROWD:
        with connection.cursor() as cursor:
            cursor.execute(NOTE_ALL_ENCOUNTERS, {"project": project.pk})


def return_expired_leases() -> int:
    with connection.cursor() as cursor:
        cursor.execute(RETURN_EXPIRED)
        returned: int = cursor.fetchone()[0]
    return returned


def queue_state(*, project: Project, user: AbstractBaseUser) -> QueueState:
    if not selectors.projects_of(user, roles=(Role.ANNOTATOR,)).filter(pk=project.pk).exists():
        return QueueState.NOT_MEMBER
    if project.state != ProjectState.ACTIVE:
        return QueueState.PAUSED
    if Membership.objects.filter(project=project, user=user.pk, role=Role.ANNOTATOR).exclude(paused_at=None).exists():
        return QueueState.PERSON_PAUSED
    limit = work_limits.limit_reached(project, user)
    if limit is not None:
        return QueueState(limit.value)
    queries = Query.objects.filter(project=project)
    if queries.filter(state=QueryState.OPEN).exists():
        return QueueState.ANSWERED_ALL
    if label_budget.questions_left(project) == 0:
        return QueueState.LABELS_SPENT
    if budget_is_spent(project):
        return QueueState.BUDGET_SPENT
    if queries.exclude(state__in=(QueryState.UNASKED, QueryState.GOLD)).exists():
        return QueueState.MORE_COMING
    return QueueState.WAITING_FOR_FIRST


def open_for_more_answers(*, project: Project, round_number: int, query_ids: Sequence[int]) -> None:
    """Ask answered questions for two more answers each; their consensus is taken back until then."""
    with transaction.atomic():
        answered = Query.objects.filter(
            project=project, pk__in=query_ids, state__in=(QueryState.CLOSED, QueryState.DISPUTED)
        )
        found = {query.pk: query for query in answered.select_for_update(no_key=True).order_by("pk")}
        if len(found) != len(query_ids):
            raise InvalidConfiguration(f"Only {len(found)} of {len(query_ids)} questions were answered before.")
        Consensus.objects.filter(query__in=list(found)).delete()
        for rank, query_id in enumerate(query_ids):
            found[query_id].priority = round_number * PRIORITY_PER_ROUND + rank
        Query.objects.bulk_update(found.values(), ["priority"])
        answered.update(
            overlap=F("overlap") + FURTHER_ANSWERS,
            open_slots=F("open_slots") + FURTHER_ANSWERS,
            state=QueryState.OPEN,
            opened_at=timezone.now(),
        )
