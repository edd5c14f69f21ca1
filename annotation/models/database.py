"""SQL that the ORM cannot express: locks, COPY, session settings, arrays of numbers."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import numpy as np
from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, Model, QuerySet
from numpy.typing import NDArray
from psycopg import Copy, sql

PAUSE_SECONDS = 0.2


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
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [kind, number])
        return bool(cursor.fetchone()[0])


def _let_go(holder: BaseDatabaseWrapper) -> None:
    try:
        # Where the session died, its lock went with it, and the ledger refuses what a second worker settled meanwhile.
        with suppress(DatabaseError):
            holder.rollback()
    finally:
        holder.close()


def wait_for_lock(number: int) -> None:
    """Take the lock of a number of 64 bits until the caller's transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])


def session_setting(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting(%s, true), '')", [name])
        return str(cursor.fetchone()[0])


def next_number(model: type[Model]) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id'))", [model._meta.db_table])
        return int(cursor.fetchone()[0])


@contextmanager
def copied_into(table: str, columns: Sequence[str], types: Sequence[str] = ()) -> Iterator[Copy]:
    """Open a binary COPY into columns of a table; the connection answers nothing else until the block ends."""
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(*table.split(".")), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        if types:
            copy.set_types(types)
        yield copy


def integer_table(found: "QuerySet[Any, Any]", *, columns: int) -> NDArray[np.int64]:
    """Read integer columns into one array, shape (n, columns), quickly: one value of packed numbers; null is -1."""
    query, values = found.query.sql_with_params()
    names = [f"c{place}" for place in range(columns)]
    packed = " || ".join(f"int8send(coalesce({name}::bigint, -1))" for name in names)
    # The aggregate takes rows in the order of the subquery.
    statement = f"SELECT string_agg({packed}, ''::bytea) FROM ({query}) AS found ({', '.join(names)})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        body = cursor.fetchone()[0] or b""
    return np.frombuffer(body, dtype=">i8").astype(np.int64).reshape(-1, columns)


ModelRow = TypeVar("ModelRow", bound=Model)


def fetch_one(statement: str, values: Sequence[Any] | Mapping[str, Any]) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


class Columns(Generic[ModelRow]):
    """Columns of one model in plain SQL; fields left out are deferred."""

    def __init__(self, model: type[ModelRow], alias: str, *, without: Iterable[str] = ()) -> None:
        fields: list[Field[Any, Any]] = [field for field in model._meta.concrete_fields if field.attname not in without]
        self._model = model
        self._names = [field.attname for field in fields]
        self._decoders = {
            place: (field, decode)
            for place, field in enumerate(fields)
            if (decode := getattr(field, "from_db_value", None)) is not None
        }
        self.sql = ", ".join(f"{alias}.{connection.ops.quote_name(str(field.column))}" for field in fields)

    def build(self, values: Iterator[Any]) -> ModelRow | None:
        """Take this model's columns off `values`; None where an outer join found no row."""
        own = [next(values) for _ in self._names]
        if own[0] is None:
            return None
        for place, (field, decode) in self._decoders.items():
            own[place] = decode(own[place], field, connection)
        return self._model.from_db(connection.alias, self._names, own)
