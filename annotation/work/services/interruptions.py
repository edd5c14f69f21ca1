"""Interruptions of long work from outside; of errors only classes and codes are read, their words may quote a row."""

import errno
from collections.abc import Iterator

import psycopg
from celery.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError

from annotation.errors import StorageAway
from privacy.wording import as_message

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# The server went away, restarts, or is not there yet; 08 are all troubles of the connection itself.
SERVER_GONE = ("57P01", "57P02", "57P03", "08")
DISK_FULL = as_message("The disk is full. Free some space and start again.")
TOOK_TOO_LONG = as_message("Stopped at the time limit. Split the data, or raise the limit.")
DATABASE_SLOW = as_message("The database was too slow. Find the cause and start again.")
STORAGE_AWAY = as_message("The file store does not answer. Start again later.")
NO_MEMORY = as_message("Out of memory. Split the data, or give the worker more.")


def passes_by_itself(error: BaseException) -> bool:
    """Say whether the database was away: nothing is wrong with the work, so that the next attempt may succeed."""
    for link in _chain(error):
        if isinstance(link, psycopg.OperationalError | psycopg.InterfaceError):
            return link.sqlstate is None or link.sqlstate.startswith(SERVER_GONE)
    return isinstance(error, InterfaceError)


def database_unavailable(error: BaseException) -> bool:
    """Say whether the database was away, full, or took longer than a page may wait."""
    return any(isinstance(link, OperationalError | InterfaceError) for link in _chain(error))


def reason_of(error: BaseException) -> str:
    """Return a sentence for a person about what stopped the work; the error's name where nothing better is known."""
    for link in _chain(error):
        if (isinstance(link, OSError) and link.errno in NO_SPACE) or isinstance(link, psycopg.errors.DiskFull):
            return DISK_FULL
        if isinstance(link, StorageAway):
            return STORAGE_AWAY
        if isinstance(link, SoftTimeLimitExceeded):
            return TOOK_TOO_LONG
        if isinstance(link, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable):
            return DATABASE_SLOW
        if isinstance(link, MemoryError | psycopg.errors.OutOfMemory):
            return NO_MEMORY
    return as_message("Stopped by {name}; see the worker's log.", name=type(error).__name__)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
