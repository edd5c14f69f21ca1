"""Django's Postgres backend for a pooler that lends a server session to one transaction at a time.

Rows read piece by piece need a cursor, and a cursor lives in one session. Inside a transaction that is the session of
the transaction; outside of one, Django's cursor would be held by a session which the next statement may not get.
"""

from typing import Any

from django.db.backends.utils import CursorWrapper

from dpal_site.watched import base


class LoneCursor(CursorWrapper):
    """A cursor with a connection and a transaction of its own, which end with it."""

    def close(self) -> None:
        """End the cursor, its transaction and the connection."""
        try:
            self.cursor.close()
            self.db.rollback()
        finally:
            self.db.close()


class DatabaseWrapper(base.DatabaseWrapper):
    """The backend, but for cursors that would outlive their transaction."""

    through_pooler = True

    def chunked_cursor(self) -> Any:
        """Return a server-side cursor inside a transaction: the one that is open, else one for the cursor alone."""
        if self.in_atomic_block:
            return super().chunked_cursor()
        reader = self.copy()
        reader.set_autocommit(False)
        return LoneCursor(base.DatabaseWrapper.chunked_cursor(reader).cursor, reader)
