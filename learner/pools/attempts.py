"""Attempts of rounds and trainings: keys, reservations and progress."""

import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction
from numpy.typing import NDArray

from annotation.errors import WorkCancelled
from annotation.models import LeasedWork
from annotation.work.services import attempts
from annotation.work.services.attempts import Lease
from learner.errors import LearnerError
from learner.models import Round, SharesReport, Stream, TrainingRun
from learner.models.answers import AnswerSeries
from learner.pools.keys import attempt_key
from privacy.accounting.event import Event
from privacy.errors import AlreadySettled, PrivacyError
from privacy.ledger import services as ledger
from privacy.ledger.faults import fault_point
from privacy.ledger.models import BudgetAccount, LedgerEntry
from privacy.wording import as_message

TellParts = Callable[[int, int], None]
# Rows whose attempts reserve, and the part of an attempt that is charged for counts over the whole pool.
Paying = Round | TrainingRun | SharesReport
POOL_PART = "pool"
# Of the bar, each step has as much as every other.
STEP_LENGTH = 100
DIGEST_PURPOSE = b"dpal ledger digest\0"

FEATURES = as_message("features are made")
CHOICE_PAID, SCORES, QUESTIONS = (
    as_message("the choice is paid for"),
    as_message("the pool is scored"),
    as_message("questions are opened"),
)
TRAINING_PAID, FIT = as_message("the training is paid for"), as_message("the model is fitted")
RELEASE = as_message("the release is written")
CHOOSING = (CHOICE_PAID, FEATURES, SCORES, QUESTIONS)
TRAINING = (TRAINING_PAID, FEATURES, FIT, RELEASE)


class Progress:
    def __init__(self, lease: Lease, steps: tuple[str, ...]) -> None:
        self._lease = lease
        self._steps = steps
        self._at = 0
        self._reported = 0

    def check(self) -> None:
        self._lease.check()

    def begin(self, step: str) -> None:
        """Begin a step, or come to it again; those before it are done."""
        self._at = self._steps.index(step)
        self._report(0, as_message("Step {step} of {steps}: {reason}.", **self._words()))

    def tell(self, done: int, total: int) -> None:
        """Say how many parts of the present step are made; `total` must be public."""
        if total > 0:
            words = as_message(
                "Step {step} of {steps}: {reason}, {done} of {total}.", done=done, total=total, **self._words()
            )
            self._report(STEP_LENGTH * done // total, words)

    def _words(self) -> dict[str, object]:
        return {"step": self._at + 1, "steps": len(self._steps), "reason": self._steps[self._at]}

    def _report(self, within: int, message: str) -> None:
        self._reported = max(self._reported, STEP_LENGTH * self._at + within)
        self._lease.report(progress_done=self._reported, progress_total=STEP_LENGTH * len(self._steps), message=message)


def silent(done: int, total: int) -> None:
    """Tell nobody."""


def spread(tell: TellParts, place: int, places: int) -> TellParts:
    def within(done: int, total: int) -> None:
        tell(place * total + done, places * total)

    return within


# Every attempt that died after its reservation was charged, so what kills its worker each time must not go on for ever.
MAX_ATTEMPTS = 10


def attempt_subject(row: Paying) -> str:
    """Return what the ledger sums the attempts of one round, of one release or of one ask for shares under."""
    if isinstance(row, SharesReport):
        return f"shares:{row.number}"
    return f"round:{row.number}" if isinstance(row, Round) else f"release:{row.version}"


class ChargedEnding(attempts.Ending):
    """Charge what an attempt reserved when it ends without an output: it may have read private rows."""

    maximum = MAX_ATTEMPTS
    refusals = (PrivacyError, LearnerError, WorkCancelled)

    def settle_earlier(self, row: LeasedWork) -> None:
        assert isinstance(row, Paying)
        _charge_open(row, attempts=range(1, row.attempt))

    def killed_words(self, row: LeasedWork) -> str:
        return as_message("Stopped after {attempts} attempts without a result.", attempts=self.maximum)

    def give_up(self, row: LeasedWork, reason: str) -> None:
        assert isinstance(row, Paying)
        with transaction.atomic():
            attempts.fail_work(row=row, error=reason)
            _charge_open(row, attempts=range(1, row.attempt + 1))


def charged_attempt(row: Paying) -> AbstractContextManager[attempts.Lease | None]:
    """Take the row for one attempt, as for any work; what it reserved stays charged however it ends."""
    return attempts.attempt_at(row, ChargedEnding())


def reserve_attempt(row: Paying, *, account: BudgetAccount, event: Event, purpose: str) -> LedgerEntry:
    """Hold the cost of this attempt, durably, before anything private is read."""
    entry = ledger.reserve(
        account=account, event=event, purpose=purpose, key=attempt_key(row, row.attempt), subject=attempt_subject(row)
    )
    row.reservation = entry
    row.save(update_fields=["reservation"])
    return entry


def pay_whole(
    row: Stream | AnswerSeries, *, account: BudgetAccount, event: Event, purpose: str, subject: str, of: Any
) -> None:
    """Charge all that will ever come of a row, once and durably before any of it."""
    digest = hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()
    kind = type(row)
    while row.entry_id is None:
        reservation = ledger.reserve(
            account=account, event=event, purpose=purpose, key=attempt_key(row, row.attempt), subject=subject
        )
        fault_point(f"{subject}_reserved")
        with transaction.atomic():
            row = kind.objects.select_for_update(no_key=True, of=("self",)).get(pk=row.pk)
            if row.entry_id is None:
                try:
                    row.entry = ledger.commit(reservation=reservation, output_digest=digest)
                except AlreadySettled:
                    # What is charged stays so, though nothing was read.
                    row.attempt += 1
                row.save(update_fields=["entry", "attempt"])


def asked_digest(chosen: Round, ids: NDArray[np.int64]) -> str:
    """Return what the ledger keeps of the ids a round asked about: an HMAC-SHA256 of them in their order.

    Engineers and auditors read it, and trying all ids would find those behind a plain SHA-256. The scope and the round
    are covered, so that two choices of the same ids do not show that they are the same.
    """
    if not settings.PSEUDONYM_KEY:
        raise ValueError("a digest of what is secret needs PSEUDONYM_KEY, which this process does not have")
    of = f"{chosen.project.pool_account.scope} {attempt_subject(chosen)}"
    message = DIGEST_PURPOSE + of.encode() + b"\0" + np.ascontiguousarray(ids, dtype="<i8").tobytes()
    return hmac.new(settings.PSEUDONYM_KEY.encode(), message, hashlib.sha256).hexdigest()


def record_descent(
    row: Round | TrainingRun,
    *,
    account: BudgetAccount,
    parent: LedgerEntry,
    operation: str,
    purpose: str,
    output_digest: str,
    part: str = "",
) -> LedgerEntry:
    """Write into an account that an attempt's output descends from `parent`, which paid for it, and costs no more."""
    return ledger.record_post_processing(
        account=account,
        parent=parent,
        operation=operation,
        purpose=purpose,
        subject=attempt_subject(row),
        output_digest=output_digest,
        key=attempt_key(row, row.attempt, part=part),
    )


def record_free_use(
    row: Round | TrainingRun, *, gates: Sequence[LedgerEntry], operation: str, purpose: str, output_digest: str
) -> list[LedgerEntry]:
    """Write into the pool's account that an output descends from what these gates let through and from nothing else."""
    return [
        record_descent(
            row,
            account=row.project.pool_account,
            parent=gate,
            operation=operation,
            purpose=purpose,
            output_digest=output_digest,
            part=f"gate {gate.sequence}",
        )
        for gate in gates
    ]


def _charge_open(row: Paying, *, attempts: range) -> None:
    keys = [attempt_key(row, attempt, part=part) for attempt in attempts for part in ("", POOL_PART)]
    ledger.charge_open(entries=LedgerEntry.objects.filter(idempotency_key__in=keys))
