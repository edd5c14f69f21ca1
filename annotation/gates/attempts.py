"""Attempts at a gate: the key each pays under, and what becomes of what it reserved when it ends badly."""

from uuid import UUID, uuid5

from django.db import transaction

from annotation.errors import TableChanged, WorkCancelled
from annotation.models import GateRun, GateState, Job, LeasedWork
from annotation.work.services import attempts, interruptions
from privacy.errors import EngineFailed, PrivacyError
from privacy.ledger import services as ledger
from privacy.ledger.models import LedgerEntry
from privacy.wording import as_message, joined_messages

# A killed attempt stays charged, so what kills its worker each time must not eat the budget.
MAXIMUM_ATTEMPTS = 3
CHARGED = as_message("What the gate reserved stays charged.")


def gate_key(job: Job, attempt: int) -> UUID:
    """Return the idempotency key of one attempt: the next one draws new coins, so it pays anew."""
    return uuid5(job.pk, str(attempt))


class GateEnding(attempts.Ending):
    """Ends an attempt at a gate: its reservation is charged whatever becomes of it, and its output is lost."""

    maximum = MAXIMUM_ATTEMPTS
    refusals = (PrivacyError, TableChanged, WorkCancelled)

    def settle_earlier(self, row: LeasedWork) -> None:
        assert isinstance(row, Job)
        _lose(row, range(1, row.attempt))

    def killed_words(self, row: LeasedWork) -> str:
        return as_message("Stopped after {attempts} killed attempts; each stays charged.", attempts=self.maximum)

    def give_up(self, row: LeasedWork, reason: str) -> None:
        assert isinstance(row, Job)
        _lose(row, range(1, row.attempt + 1))
        attempts.fail_work(row=row, error=reason)

    def refused(self, row: LeasedWork, refusal: Exception) -> None:
        assert isinstance(row, Job)
        reserved = LedgerEntry.objects.filter(idempotency_key=gate_key(row, row.attempt)).exists()
        if isinstance(refusal, EngineFailed | TableChanged) and reserved:
            self.give_up(row, joined_messages(" ", [str(refusal), CHARGED]))
        else:
            super().refused(row, refusal)

    def failed(self, row: LeasedWork, error: Exception) -> None:
        assert isinstance(row, Job)
        self.give_up(row, joined_messages(" ", [interruptions.reason_of(error), CHARGED]))


def _lose(job: Job, attempts: range) -> None:
    keys = [gate_key(job, attempt) for attempt in attempts]
    with transaction.atomic():
        ledger.charge_open(entries=LedgerEntry.objects.filter(idempotency_key__in=keys))
        GateRun.objects.filter(dataset=job.gated_dataset, state=GateState.RUNNING).update(state=GateState.LOST)
