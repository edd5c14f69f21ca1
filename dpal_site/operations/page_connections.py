"""Database connections of processes that serve pages: pooled, and ended when the server says nothing."""

from typing import Any

import psycopg
from psycopg.abc import PQGen

# For a new connection, and for one of the pool.
CONNECT_SECONDS = 3


class PatientConnection(psycopg.Connection[Any]):
    """A connection that bears no longer silence: a frozen server keeps none of its own time limits."""

    patience = float(CONNECT_SECONDS)

    def execute(self, *statement: Any, **options: Any) -> psycopg.Cursor[Any]:
        patience, self.patience = self.patience, float(CONNECT_SECONDS)
        try:
            return super().execute(*statement, **options)
        finally:
            self.patience = patience

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, self.patience if timeout is None else timeout)
        except psycopg.OperationalError:
            # After a wait without an answer the connection is in the middle of something.
            if self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise


def for_pages(database: dict[str, Any], *, threads: int, statement_seconds: int, behind_pooler: bool) -> dict[str, Any]:
    PatientConnection.patience = statement_seconds + 2.0
    options = database["OPTIONS"] | {
        "pool": {
            "connection_class": PatientConnection,
            "min_size": threads,
            "max_size": threads,
            "timeout": CONNECT_SECONDS,
            "reconnect_timeout": CONNECT_SECONDS,
        },
        "connect_timeout": CONNECT_SECONDS,
    }
    if not behind_pooler:
        limits = (
            f"-c statement_timeout={statement_seconds}s -c idle_in_transaction_session_timeout={3 * statement_seconds}s"
        )
        options["options"] = f"{options.get('options', '')} {limits}".strip()
    return database | {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": True, "OPTIONS": options}
