"""One worker at a time for work that is several transactions long."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

PAUSE_SECONDS = 0.2
TRY = "SELECT pg_try_advisory_xact_lock(%s, %s)"


@contextmanager
def hold_lock(*, kind: int, number: int) -> Iterator[None]:
    """Hold a lock, which the server frees when this worker dies, until the end of the block.

    It belongs to a transaction of its own on a connection of its own, so that it also holds where a pooler lends
    sessions by transaction. Who waits asks again and again, and keeps no session meanwhile.
    """
    holder = connection.copy()
    try:
        holder.set_autocommit(False)
        while not _taken(holder, kind, number):
            holder.rollback()
            time.sleep(PAUSE_SECONDS)
        yield
    finally:
        _let_go(holder)


def _taken(holder: BaseDatabaseWrapper, kind: int, number: int) -> bool:
    with holder.cursor() as cursor:
        cursor.execute(TRY, [kind, number])
        return bool(cursor.fetchone()[0])


def _let_go(holder: BaseDatabaseWrapper) -> None:
    try:
        # Where the session died, its lock went with it, and the ledger refuses what a second worker settled meanwhile.
        with suppress(DatabaseError):
            holder.rollback()
    finally:
        holder.close()
