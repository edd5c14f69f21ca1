"""Long work on one row under a lease; when the lease lapses, the next attempt may start."""

# The clock is the database's. `attempt` is the fence: only the attempt that holds the row can finish it, so call
# `finish_work` inside the transaction that stores the output and a taken-over worker stores nothing.

import gc
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, models, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from annotation.errors import WorkCancelled, WorkLost
from annotation.models import Job, LeasedWork, WorkState
from annotation.work.services import interruptions, jobs, looks
from privacy.errors import AlreadySettled
from privacy.wording import as_message

logger = logging.getLogger(__name__)
MAXIMUM_ATTEMPTS = 5
REPORT_EVERY_SECONDS = 1.0


class Lease:
    """The hold of one attempt on its row, kept by a thread until the block of `keep_lease` ends."""

    def __init__(self, row: LeasedWork) -> None:
        self._row = row
        self._lost = threading.Event()
        self._stop = threading.Event()
        self._news: dict[str, Any] = {}
        self._cancelled_by: str = row.cancelled_by
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
        self._thread.start()

    def stop(self) -> None:
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
                    held.update(leased_until=lease_end(), **news)
                    return True
            return held.exists()
        except DatabaseError:
            logger.warning("lease of %s %s not renewed, trying again", self._row._meta.model_name, self._row.pk)
            connection.close()
            return True


def take_work(*, row: LeasedWork) -> bool:
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
            state=WorkState.RUNNING, attempt=F("attempt") + 1, leased_until=lease_end(), started_at=Now()
        )
        row.refresh_from_db()
    return True


def checked_at(lease: Lease) -> Callable[[int], None]:
    return lambda rows: lease.check()


def told_of_rows(lease: Lease, total: int, message: str) -> Callable[[int], None]:
    """Return what checks a lease, and notes how many of so many rows are read, whenever it is told."""

    def tell(rows: int) -> None:
        lease.check()
        lease.report(progress_done=rows, progress_total=total, message=message)

    return tell


@contextmanager
def keep_lease(row: LeasedWork) -> Iterator[Lease]:
    """Renew the lease of a taken row every third of it, from a thread with a connection of its own."""
    lease = Lease(row)
    lease.start()
    try:
        yield lease
    finally:
        lease.stop()


class Ending:
    """End of an attempt without a result; kinds of work override what differs for them.

    After `maximum` attempts that ended in a killed worker the row fails. A refusal fails it with its own words: nothing
    is wrong with the program.
    """

    maximum: int = MAXIMUM_ATTEMPTS
    refusals: tuple[type[Exception], ...] = (WorkCancelled,)

    def settle_earlier(self, row: LeasedWork) -> None:
        """Write off what killed attempts left before this one does anything."""

    def killed_words(self, row: LeasedWork) -> str:
        return as_message("Given up: {attempts} attempts were killed.", attempts=self.maximum)

    def give_up(self, row: LeasedWork, reason: str) -> None:
        fail_work(row=row, error=reason)

    def refused(self, row: LeasedWork, refusal: Exception) -> None:
        self.give_up(row, str(refusal))

    def failed(self, row: LeasedWork, error: Exception) -> None:
        self.give_up(row, interruptions.reason_of(error))


CHARGES_NOTHING = Ending()


@contextmanager
def attempt_at(row: LeasedWork, ending: Ending = CHARGES_NOTHING) -> Iterator[Lease | None]:
    """Take a row for one attempt; yields None when there is nothing to take, or nothing more to try.

    A refusal, cancellation or error fails the row; where the database went away it stays for the next attempt. A row
    that another worker has taken over is left alone.
    """
    if not take_work(row=row):
        yield None
        return
    begun = False
    with keep_lease(row) as lease:
        try:
            may_begin = _may_begin(row, ending)
            begun = True
            yield lease if may_begin else None
        except (WorkLost, AlreadySettled):
            _say_lost(row)
        except ending.refusals as refusal:
            with _unless_lost(row):
                ending.refused(row, refusal)
        except Exception as error:
            if interruptions.passes_by_itself(error):
                logger.warning("%s %s lost the database in attempt %s", *_named(row))
            else:
                with _unless_lost(row):
                    ending.failed(row, error)
                    raise
    if not begun:
        yield None


def _may_begin(row: LeasedWork, ending: Ending) -> bool:
    ending.settle_earlier(row)
    if row.attempt > ending.maximum:
        ending.give_up(row, ending.killed_words(row))
        return False
    if row.cancelled_by:
        # Nothing was reserved yet, so this attempt costs nothing.
        raise WorkCancelled(cancelled_words(row.cancelled_by))
    return True


@contextmanager
def _unless_lost(row: LeasedWork) -> Iterator[None]:
    try:
        yield
    except WorkLost:
        _say_lost(row)


def _say_lost(row: LeasedWork) -> None:
    # Nothing of this attempt was stored; whoever took over has written off what it reserved.
    logger.warning("%s %s was taken over, attempt %s stops", *_named(row))


def _named(row: LeasedWork) -> tuple[str, object, int]:
    kind = f"{row.kind} job" if isinstance(row, Job) else str(row._meta.model_name)
    return kind, row.pk, row.attempt


def finish_work(*, row: LeasedWork, **fields: Any) -> None:
    """Mark the row done, with `fields`, in the caller's transaction; `WorkLost` if another attempt holds it by now."""
    # The update waits for whoever is cancelling at this moment.
    if not _held_rows(row).filter(cancelled_by="").update(**_ended(state=WorkState.DONE, error="", **fields)):
        cancelled_by = _held_rows(row).values_list("cancelled_by", flat=True).first()
        if cancelled_by:
            raise WorkCancelled(cancelled_words(cancelled_by))
        raise _lost(row)
    _go_on_after(row)
    row.refresh_from_db()


def cancel_work(*, row: LeasedWork, by: str) -> bool:
    """Have the work stop: at once where it waits, at its next safe point where it runs; false where it has ended."""
    words = cancelled_words(by)
    with transaction.atomic():
        waits = _rows(row).filter(pk=row.pk, state=WorkState.WAITING)
        stopped = waits.update(state=WorkState.FAILED, finished_at=Now(), cancelled_by=by, error=words)
        _go_on_after(row)
        asked = stopped or _rows(row).filter(pk=row.pk, state=WorkState.RUNNING).update(cancelled_by=by)
    row.refresh_from_db()
    return bool(asked)


def cancelled_words(by: str) -> str:
    return as_message("Cancelled by {by}.", by=by)


def fail_work(*, row: LeasedWork, error: str, **fields: Any) -> None:
    """Mark the row failed with a sentence a person can act on, free of content; it is not tried again."""
    with transaction.atomic():
        if not _held_rows(row).update(**_ended(state=WorkState.FAILED, error=error, **fields)):
            raise _lost(row)
        _go_on_after(row)
    row.refresh_from_db()


def note_interruption(*, row: LeasedWork, error: str) -> None:
    """Say on the row why this attempt stopped while the next one is awaited; nothing where another one holds it."""
    _held_rows(row).update(error=error)


def _go_on_after(row: Any) -> None:
    """Have the clock look at the project of ended work, and send what waited for its share."""
    if row.project_id is not None:
        looks.look_at([row.project_id])
    jobs.send_on_commit()


def _ended(**fields: Any) -> dict[str, Any]:
    return {"leased_until": None, "finished_at": Now()} | fields


def _lost(row: LeasedWork) -> WorkLost:
    return WorkLost(f"{row._meta.model_name} {row.pk} was taken over by another worker")


def _rows(row: LeasedWork) -> QuerySet[Any]:
    return type(row)._default_manager.all()


def _held_rows(row: LeasedWork) -> QuerySet[Any]:
    return _rows(row).filter(pk=row.pk, state=WorkState.RUNNING, attempt=row.attempt)


def _lock(rows: QuerySet[Any], *, skip_locked: bool = False) -> QuerySet[Any]:
    return rows.select_for_update(of=("self",), skip_locked=skip_locked, no_key=True).values_list("pk")


def lease_end() -> "models.ExpressionWrapper[Any]":
    """Return when a hold that is taken now lapses, by the clock of the database."""
    return models.ExpressionWrapper(
        Now() + timedelta(seconds=settings.WORK_LEASE_SECONDS), output_field=models.DateTimeField()
    )


@contextmanager
def collector_paused() -> Iterator[None]:
    """Switch the garbage collector off in the block: in a large import it would run thousands of times for nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
