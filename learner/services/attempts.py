"""One attempt at a round or a training: what it reserves, and what becomes of that when the attempt ends badly."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import transaction

from annotation.errors import WorkCancelled, WorkLost
from annotation.services import interruptions
from annotation.services.work import Lease, cancelled_words, fail_work, keep_lease, take_work
from learner.errors import LearnerError
from learner.keys import key_of
from learner.models import Round, TrainingRun
from privacy.accounting.event import Event
from privacy.errors import AlreadySettled, PrivacyError
from privacy.models import SETTLEMENTS, BudgetAccount, EntryKind, LedgerEntry
from privacy.services import ledger
from privacy.wording import say

logger = logging.getLogger(__name__)
# Every attempt that died after its reservation was charged, so what kills its worker each time must not go on for ever.
MAX_ATTEMPTS = 10


def subject_of(row: Round | TrainingRun) -> str:
    """Return what the ledger sums the attempts of one round, or of one release, under."""
    return f"round:{row.number}" if isinstance(row, Round) else f"release:{row.version}"


@contextmanager
def attempt_at(row: Round | TrainingRun) -> Iterator[Lease | None]:
    """Take the row for one attempt; yields None when there is nothing to take.

    What an earlier attempt reserved and never settled is charged first: it may have read private rows. A refusal
    or a cancellation fails the row with its reason; any other error fails it too, and is raised for the log. Either way
    the reservation of this attempt is charged. Where the database went away, the row keeps its lapsing lease for the
    next attempt.
    """
    if not take_work(row=row):
        yield None
        return
    with keep_lease(row) as lease:
        _charge_open(row, attempts=range(1, row.attempt))
        if row.attempt > MAX_ATTEMPTS:
            fail_work(
                row=row,
                error=say("Given up: {attempts} attempts ended without a result.", attempts=MAX_ATTEMPTS),
            )
            yield None
            return
        if row.cancelled_by:
            # Nothing is reserved yet, so this attempt costs nothing.
            fail_work(row=row, error=cancelled_words(row.cancelled_by))
            yield None
            return
        try:
            yield lease
        except (WorkLost, AlreadySettled):
            _note_loss(row)
        except (PrivacyError, LearnerError, WorkCancelled) as refusal:
            _give_up(row, str(refusal))
        except Exception as error:
            if interruptions.passes_by_itself(error):
                logger.warning("%s %s lost the database in attempt %s", row._meta.model_name, row.pk, row.attempt)
                return
            if _give_up(row, interruptions.reason_of(error)):
                raise


def reserve(row: Round | TrainingRun, *, account: BudgetAccount, event: Event, purpose: str) -> LedgerEntry:
    """Hold the cost of this attempt, durably, before anything private is read."""
    entry = ledger.reserve(
        account=account, event=event, purpose=purpose, key=key_of(row, row.attempt), subject=subject_of(row)
    )
    row.reservation = entry
    row.save(update_fields=["reservation"])
    return entry


def record_free_use(
    row: Round | TrainingRun, *, gates: Sequence[LedgerEntry], operation: str, purpose: str, output_digest: str
) -> list[LedgerEntry]:
    """Write into the pool's account that an output descends from what these gates let through and from nothing else."""
    return [
        ledger.record_post_processing(
            account=row.project.pool_account,
            parent=gate,
            operation=operation,
            purpose=purpose,
            subject=subject_of(row),
            output_digest=output_digest,
            key=key_of(row, row.attempt, part=f"gate {gate.sequence}"),
        )
        for gate in gates
    ]


def _give_up(row: Round | TrainingRun, reason: str) -> bool:
    """Fail the row and charge what its attempt holds; false where another worker has taken it over meanwhile."""
    try:
        with transaction.atomic():
            fail_work(row=row, error=reason)
            _charge_open(row, attempts=range(1, row.attempt + 1))
    except WorkLost:
        _note_loss(row)
        return False
    return True


def _note_loss(row: Round | TrainingRun) -> None:
    # Whoever took over has charged what this attempt reserved; nothing of it was stored.
    logger.warning("%s %s was taken over, attempt %s stops", row._meta.model_name, row.pk, row.attempt)


def _charge_open(row: Round | TrainingRun, *, attempts: range) -> None:
    keys = [key_of(row, attempt) for attempt in attempts]
    reserved = LedgerEntry.objects.filter(idempotency_key__in=keys, kind=EntryKind.RESERVE)
    for reservation in reserved.exclude(children__kind__in=SETTLEMENTS).select_related("account"):
        with transaction.atomic():
            ledger.charge(reservation=reservation, reason=say("the attempt ended without an output"))
