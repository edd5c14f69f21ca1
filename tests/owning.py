"""Acting as the owner of the tables, in the transaction that is open: for attacks and damage only an owner can do.

What is tested runs as the site's role (tests/conftest.py).
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import InternalError, connection
from django.db.backends.utils import CursorWrapper

ENABLING = """
    SELECT format('ALTER TABLE %%s ENABLE %%s TRIGGER %%I', tgrelid::regclass,
                  CASE tgenabled WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' ELSE '' END, tgname)
    FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = %s::regclass
"""


@contextmanager
def without_rules(*tables: str) -> Iterator[CursorWrapper]:
    """Act as the owner while no rule of these tables holds, and put each back as it was, for replicas or not."""
    with as_owner(), connection.cursor() as cursor:
        enabling = []
        for table in tables:
            cursor.execute(ENABLING, [table])
            enabling += [statement for (statement,) in cursor.fetchall()]
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield cursor
        for statement in enabling:
            cursor.execute(statement)


@contextmanager
def without_check(table: str, name: str) -> Iterator[None]:
    """Have one check of a table not hold for a block; afterwards the table is empty, and the check holds again."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [name])
        (definition,) = cursor.fetchone()
        cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    try:
        yield
    finally:
        with as_owner(), connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {table}")
            cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")


@contextmanager
def as_owner() -> Iterator[None]:
    """Lift the site's role from this thread's connection, and put it back."""
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE none")
    try:
        yield
    finally:
        # Where the transaction has failed, its end puts the role back.
        with suppress(InternalError), connection.cursor() as cursor:
            cursor.execute("RESET ROLE")


def site_url(owner_url: str, role: str = "dpal_site") -> str:
    """Return the address of the same database for the role of web servers and workers, which migrations make."""
    return f"postgresql://{role}:{secrets.token_hex(16)}@{owner_url.rpartition('@')[2]}"


def waits_for_a_lock() -> bool:
    """Say whether another session of this test waits for a lock that somebody holds."""
    with as_owner(), connection.cursor() as cursor:
        # A transaction is told the same again until it asks anew.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])
