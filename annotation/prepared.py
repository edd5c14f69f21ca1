"""Running the statements behind every click: prepared once a connection, so that they are not planned at each click.

Planning what hands out a question takes the server longer than doing it. A pooler that gives each transaction another
connection knows nothing of prepared statements: there `DATABASES["default"]["OPTIONS"]["prepare_threshold"]` stays
unset, and the same statements run unprepared.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections


class PreparingCursor(psycopg.Cursor[Any]):
    """A cursor that prepares whatever it runs, where its connection may."""

    def _get_prepared(self, pgq: Any, prepare: bool | None = None) -> Any:
        # Django's list of statements reads the text here, which psycopg keeps of unprepared ones alone.
        self._query = pgq
        return super()._get_prepared(pgq, prepare=True)


def fetch_one(statement: str, values: Sequence[Any] | Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Run a statement that is the same at every click, and return its first row."""
    # As `connection.cursor()` does it; but its cursors put the values into the text, and a text that is always another
    # cannot be prepared.
    database = connections[DEFAULT_DB_ALIAS]
    database.close_if_health_check_failed()
    database.ensure_connection()
    database.validate_thread_sharing()
    with database.wrap_database_errors:
        bare: Any = PreparingCursor(database.connection)
    with database.make_debug_cursor(bare) if database.queries_logged else database.make_cursor(bare) as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row
