"""Django's Postgres backend for processes that serve pages: no page waits for a server that says nothing.

With the option `silence_seconds` a wait without a word from the server ends, and a connection that was just used is not
tried with a statement before it is used again; without it this is Django's own.
"""

import select
import time
from functools import partial
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from dpal_site.watched.watch import ASK_SECONDS, WATCH, DatabaseSilent, Value, takes_connections

OPTION = "silence_seconds"
# So long after its last word a server is taken to be there, if it has not said since that it goes.
FRESH_SECONDS = 1.0


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that ends when its server says nothing."""

    longest_silence: float = 0.0
    knock: partial[bool] | None = None
    heard_at: float = float("-inf")

    def wait(self, gen: PQGen[Value], interval: float = 0.1, timeout: float | None = None) -> Value:
        """Wait as psycopg does, but for no server that is silent."""
        if not self.longest_silence:
            return super().wait(gen, interval, timeout)
        # What fails says nothing for the next one.
        self.heard_at = float("-inf")
        try:
            with WATCH.asking():
                listening = WATCH.listen(gen, longest=self.longest_silence, is_there=self.knock)
                found = super().wait(listening, interval, timeout)
                self.heard_at = time.monotonic()
                return found
        except DatabaseSilent:
            # Nothing is asked of the server any more, not even to forget the statement.
            self.pgconn.finish()
            raise

    def is_fresh(self) -> bool:
        """Say whether the server answered a moment ago, waits, and has said nothing since, such as that it goes."""
        if self.closed or time.monotonic() - self.heard_at > FRESH_SECONDS:
            return False
        if self.info.transaction_status != TransactionStatus.IDLE:
            return False
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return not poll.poll(0)


class _Psycopg:
    """The module, but for the connections it opens."""

    def __getattr__(self, name: str) -> Any:
        return getattr(psycopg, name)

    @staticmethod
    def connect(**parameters: Any) -> psycopg.Connection[Any]:
        silence, pooled = parameters.pop(OPTION, 0.0), parameters.pop("pooled", False)
        if not silence:
            return psycopg.connect(**parameters)
        parameters.setdefault("connect_timeout", ASK_SECONDS)
        try:
            # A pooler answers for a server that does not.
            with WATCH.asking(settles=not pooled):
                opened = WatchedConnection.connect(**parameters)
        except psycopg.errors.ConnectionTimeout:
            WATCH.silent = True
            raise
        opened.longest_silence = silence
        opened.knock = None if pooled else partial(takes_connections, parameters)
        return opened


class DatabaseWrapper(base.DatabaseWrapper):
    """The backend over connections that are listened to."""

    Database = _Psycopg()  # type: ignore[assignment]  # but for `connect`, the module
    through_pooler = False

    def is_usable(self) -> bool:
        """Ask the server whether it is there, unless it has just answered: no click costs a statement for that."""
        connection = self.connection
        return (isinstance(connection, WatchedConnection) and connection.is_fresh()) or bool(super().is_usable())

    def get_connection_params(self) -> dict[str, Any]:
        """Say with the rest whether a pooler stands between, where it matters."""
        parameters: dict[str, Any] = super().get_connection_params()
        return parameters | {"pooled": self.through_pooler} if OPTION in parameters else parameters
