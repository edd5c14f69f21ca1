"""Running the statements behind every click: prepared once a connection, so that they are not planned at each click.

Planning what hands out a question takes the server longer than doing it. A pooler that gives each transaction another
connection knows nothing of prepared statements: there `DATABASES["default"]["OPTIONS"]["prepare_threshold"]` stays
unset, and the same statements run unprepared.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg.abc import Params


class PreparingCursor(psycopg.Cursor[Any]):
    def execute(
        self, query: Any, params: Params | None = None, *, prepare: bool | None = True, binary: bool | None = None
    ) -> Self:
        return super().execute(query, params, prepare=prepare, binary=binary)


def fetch_one(statement: str, values: Sequence[Any] | Mapping[str, Any]) -> tuple[Any, ...] | None:
    # As `connection.cursor()` does it; but its cursors put the values into the text, and a text that is always another
    # cannot be prepared.
    database = connections[DEFAULT_DB_ALIAS]
    database.close_if_health_check_failed()
    database.ensure_connection()
    database.validate_thread_sharing()
    started = time.monotonic()
    with database.wrap_database_errors:
        bare: Any = PreparingCursor(database.connection)
    with database.make_cursor(bare) as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
    if database.queries_logged:
        # Django's own list asks the cursor for its text, which one that prepares does not keep.
        database.queries_log.append({"sql": statement, "time": f"{time.monotonic() - started:.3f}"})
    return row
