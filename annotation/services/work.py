"""Long work on one row: whoever takes it holds a lease; when the lease lapses, the next attempt may start.

Works on any model with the fields `state` (`WorkState`), `attempt`, `leased_until`, `started_at`, `cancelled_by`,
`error` and `finished_at`. The clock is the database's. `attempt` is the fence: only the attempt that holds the row can
finish it, so call `finish_work` inside the transaction that stores the output and a taken-over worker stores nothing.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, models, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from annotation.errors import WorkCancelled, WorkLost
from annotation.models import Job, WorkState
from annotation.services import interruptions
from privacy.wording import say

logger = logging.getLogger(__name__)
MAX_ERROR_LENGTH = 1000
MAXIMUM_ATTEMPTS = 5
REPORT_EVERY_SECONDS = 1.0


class Lease:
    """The hold of one attempt on its row, kept by a thread until the block of `keep_lease` ends."""

    def __init__(self, row: models.Model) -> None:
        self._row = row
        self._lost = threading.Event()
        self._stop = threading.Event()
        self._news: dict[str, Any] = {}
        self._cancelled_by: str = row.cancelled_by  # type: ignore[attr-defined]
        self._renew_every = settings.WORK_LEASE_SECONDS / 3
        self._thread = threading.Thread(target=self._keep, name=f"lease of {row.pk}", daemon=True)

    def report(self, **fields: Any) -> None:
        """Note fields of the row (progress, message) for the next write, at most one each second."""
        self._news = fields

    def check(self) -> None:
        """Raise `WorkLost` once another attempt has the row, `WorkCancelled` once a manager wants it to stop."""
        if self._cancelled_by:
            raise WorkCancelled(cancelled_words(self._cancelled_by))
        if self._lost.is_set():
            raise WorkLost(f"{self._row._meta.model_name} {self._row.pk} was taken over by another worker")

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def stop(self) -> None:
        """End renewing and wait for the thread to have closed its connection."""
        self._stop.set()
        self._thread.join()

    def _keep(self) -> None:
        waited = 0.0
        pause = min(REPORT_EVERY_SECONDS, self._renew_every)
        try:
            while not self._stop.wait(pause):
                waited += pause
                self._listen()
                if not self._news and waited < self._renew_every:
                    continue
                waited = 0.0
                if not self._renew():
                    self._lost.set()
                    return
        finally:
            connection.close()

    def _listen(self) -> None:
        """Hear whether the work is cancelled."""
        try:
            self._cancelled_by = _held_rows(self._row).values_list("cancelled_by", flat=True).first() or ""
        except DatabaseError:
            connection.close()

    def _renew(self) -> bool:
        """Write the lease and the news; false once the row belongs to another attempt."""
        news, self._news = self._news, {}
        held = _held_rows(self._row)
        try:
            with transaction.atomic():
                # Whoever finishes the work holds the row's lock already; waiting for it would wait for ourselves.
                if _lock(held, skip_locked=True).first():
                    held.update(leased_until=_lease_end(), **news)
                    return True
            return held.exists()
        except DatabaseError:
            logger.warning("lease of %s %s not renewed, trying again", self._row._meta.model_name, self._row.pk)
            connection.close()
            return True


def take_work(*, row: models.Model) -> bool:
    """Take a waiting row, or a running one whose lease lapsed, for a new attempt; false if there is nothing to take."""
    waiting = _rows(row).filter(pk=row.pk, state=WorkState.WAITING)
    lapsed = _rows(row).filter(pk=row.pk, state=WorkState.RUNNING, leased_until__lt=Now())
    # Durable: a lease inside somebody's open transaction would be seen by nobody.
    with transaction.atomic(durable=True):
        # Who sends the task writes to the row right after: skipping it then would leave the work to the beat. A lapsed
        # one may be held by its old attempt for as long as that takes to store, or by a host that is gone.
        taken = _lock(waiting).first() or _lock(lapsed, skip_locked=True).first()
        if taken is None:
            return False
        _rows(row).filter(pk=row.pk).update(
            state=WorkState.RUNNING, attempt=F("attempt") + 1, leased_until=_lease_end(), started_at=Now()
        )
        row.refresh_from_db()
    return True


@contextmanager
def keep_lease(row: models.Model) -> Iterator[Lease]:
    """Renew the lease of a taken row every third of it, from a thread with a connection of its own."""
    lease = Lease(row)
    lease.start()
    try:
        yield lease
    finally:
        lease.stop()


@contextmanager
def attempt_at(job: Job) -> Iterator[Lease | None]:
    """Take a job that charges nothing for one attempt; yields None when there is nothing to take.

    A cancellation fails the job with its reason, and so does any error, which is raised for the log; where the database
    went away, the job keeps its lapsing lease for the next attempt. The attempt after the last one fails it, too.
    """
    if not take_work(row=job):
        yield None
        return
    with keep_lease(job) as lease:
        try:
            if job.attempt > MAXIMUM_ATTEMPTS:
                fail_work(row=job, error=say("Given up: {attempts} attempts were killed.", attempts=MAXIMUM_ATTEMPTS))
                yield None
                return
            yield lease
        except WorkCancelled as cancelled:
            fail_work(row=job, error=str(cancelled))
        except WorkLost:
            logger.warning("%s job %s was taken over, attempt %s stops", job.kind, job.pk, job.attempt)
        except Exception as error:
            if interruptions.passes_by_itself(error):
                logger.warning("%s job %s lost the database in attempt %s", job.kind, job.pk, job.attempt)
                return
            fail_work(row=job, error=interruptions.reason_of(error))
            raise


def finish_work(*, row: models.Model, **fields: Any) -> None:
    """Mark the row done, with `fields`, in the caller's transaction; `WorkLost` if another attempt holds it by now.

    This is the last point at which cancelling stops the work: what is done is done.
    """
    # The update waits for whoever is cancelling at this moment.
    if not _held_rows(row).filter(cancelled_by="").update(**_ended(state=WorkState.DONE, error="", **fields)):
        cancelled_by = _held_rows(row).values_list("cancelled_by", flat=True).first()
        if cancelled_by:
            raise WorkCancelled(cancelled_words(cancelled_by))
        raise _lost(row)
    row.refresh_from_db()


def cancel_work(*, row: models.Model, by: str) -> bool:
    """Have the work stop: at once where it waits, at its next safe point where it runs; false where it has ended."""
    words = cancelled_words(by)
    with transaction.atomic():
        waits = _rows(row).filter(pk=row.pk, state=WorkState.WAITING)
        stopped = waits.update(state=WorkState.FAILED, finished_at=Now(), cancelled_by=by, error=words)
        asked = stopped or _rows(row).filter(pk=row.pk, state=WorkState.RUNNING).update(cancelled_by=by)
    row.refresh_from_db()
    return bool(asked)


def cancelled_words(by: str) -> str:
    """Say that and by whom work was cancelled."""
    return say("Cancelled by {by}.", by=by)


def fail_work(*, row: models.Model, error: str, **fields: Any) -> None:
    """Mark the row failed with a sentence a person can act on, free of content; it is not tried again."""
    if not _held_rows(row).update(**_ended(state=WorkState.FAILED, error=error[:MAX_ERROR_LENGTH], **fields)):
        raise _lost(row)
    row.refresh_from_db()


def note_interruption(*, row: models.Model, error: str) -> None:
    """Say on the row why this attempt stopped while the next one is awaited; nothing where another one holds it."""
    _held_rows(row).update(error=error[:MAX_ERROR_LENGTH])


def _ended(**fields: Any) -> dict[str, Any]:
    return {"leased_until": None, "finished_at": Now()} | fields


def _lost(row: models.Model) -> WorkLost:
    return WorkLost(f"{row._meta.model_name} {row.pk} was taken over by another worker")


def _rows(row: models.Model) -> QuerySet[Any]:
    return type(row)._default_manager.all()


def _held_rows(row: models.Model) -> QuerySet[Any]:
    return _rows(row).filter(pk=row.pk, state=WorkState.RUNNING, attempt=row.attempt)  # type: ignore[attr-defined]


def _lock(rows: QuerySet[Any], *, skip_locked: bool = False) -> QuerySet[Any]:
    return rows.select_for_update(of=("self",), skip_locked=skip_locked, no_key=True).values_list("pk")


def _lease_end() -> "models.ExpressionWrapper[Any]":
    return models.ExpressionWrapper(
        Now() + timedelta(seconds=settings.WORK_LEASE_SECONDS), output_field=models.DateTimeField()
    )
