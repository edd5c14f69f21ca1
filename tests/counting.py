"""Counters outside the database for tests: each in a folder of its own, and all known to the test's database."""

from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import connection

from privacy.ledger.counter_file import CounterFile

IDENTITY = UUID(int=7_303)


def new_counter(folder: Path) -> Path:
    """Begin a counter in a folder, and return where it lies."""
    path = folder / "ledger-counter.json"
    CounterFile(path).begin(IDENTITY.hex, {})
    return path


def begin_over() -> None:
    """Forget what the shared counter of this test process has seen: its database was emptied."""
    path = Path(settings.LEDGER_COUNTER_PATH)
    anew = path.with_name("ledger-counter-anew.json")
    CounterFile(anew).begin(IDENTITY.hex, {})
    # There is no moment without a counter, in which a thread that still runs would find none.
    anew.replace(path)


def know_the_counter() -> None:
    """Have the database know these counters, newly made or made by an earlier run; as its owner."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO privacy_ledgercounter (identity, reason) VALUES (%s, '') ON CONFLICT (identity) DO NOTHING",
            [IDENTITY],
        )
