"""What a test begins with, built once in a process and put back for the next that begins with it: rows, files, counter.

A project with a release takes half a second to build through the services, and a twentieth of that to put back. Numbers
of rows go on from where they are, so no test's row ever has the number of another's.
"""

import copy
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from privacy.ledger.counter import site_counter
from privacy.ledger.marks import AccountIdentity, Mark
from tests.chance import let_chance_repeat
from tests.emptying import written_tables

Made = TypeVar("Made")
# The ledger's rules about new rows hold for replicas as well, so they are put off and come back.
RULES = """
    SELECT coalesce(string_agg(format('ALTER TABLE %%s DISABLE TRIGGER %%I', tgrelid::regclass, tgname), ';'), ''),
           coalesce(string_agg(format('ALTER TABLE %%s ENABLE ALWAYS TRIGGER %%I', tgrelid::regclass, tgname), ';'), '')
    FROM pg_trigger
    WHERE NOT tgisinternal AND tgenabled = 'A' AND tgtype::int & 4 <> 0 AND tgrelid::regclass::text = ANY (%s)
"""


@dataclass(frozen=True, slots=True)
class Beginning:
    """All that a build left: what it returned, the rows of each table as COPY writes them, files and marks."""

    made: Any
    rows: dict[str, bytes]
    folder: Path
    marks: dict[AccountIdentity, Mark]


def begin(kept: dict[str, Beginning], name: str, build: Callable[[], Made], *, storage: Path, room: Path) -> Made:
    """Return what `build` makes in an empty site, such as a project; it is made once for each name in `kept`.

    `storage` is where the site keeps its files for this test, and `room` where what is kept of them may stay.
    """
    beginning = kept.get(name)
    if beginning is None:
        written = written_rows()
        assert not written, f"What is remembered begins in an empty site, and there are rows in {', '.join(written)}."
        # Whichever test comes first, what they begin with is the same.
        with pytest.MonkeyPatch.context() as patch:
            let_chance_repeat(patch, name)
            made = build()
        folder = shutil.copytree(storage, room / f"beginning-{len(kept)}")
        kept[name] = Beginning(copy.deepcopy(made), written_rows(), folder, dict(site_counter().marks()))
        return made
    _put_back(beginning.rows)
    shutil.copytree(beginning.folder, storage, dirs_exist_ok=True)
    site_counter().begin(site_counter().identity, beginning.marks)
    again: Made = copy.deepcopy(beginning.made)
    return again


def written_rows() -> dict[str, bytes]:
    """Return the rows of every table that has any, but for those that migrations fill."""
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE none")
        rows = {table: _copied(cursor, table) for table in written_tables()}
        cursor.execute("RESET ROLE")
    return {table: copied for table, copied in rows.items() if copied}


def _copied(cursor: CursorWrapper, table: str) -> bytes:
    with cursor.copy(f"COPY {table} TO STDOUT") as rows:
        return b"".join(rows)


def _put_back(rows: dict[str, bytes]) -> None:
    """Write rows back as they were; no rule of ours looks at them again, and no row asks for another one."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET ROLE none")
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(RULES, [list(rows)])
        off, on = cursor.fetchone()
        cursor.execute(off)
        for table, copied in rows.items():
            with cursor.copy(f"COPY {table} FROM STDIN") as written:
                written.write(copied)
        cursor.execute(on)
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("RESET ROLE")
