"""A cache for what must not be forgotten early: how often somebody tried something.

Django's cache in the database makes room by throwing entries away, live ones too, so that whoever fills it makes it
forget their guesses. Here an entry goes when its time is over, and a clock sweeps. Values are JSON, not pickles.
"""

import hashlib
import json
import time
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.db import connection

LONGEST_SECONDS = 366 * 24 * 3600
GET = "SELECT value::text FROM dpal_site_cachedcount WHERE key = %s AND ends_at > now()"
SET = """
INSERT INTO dpal_site_cachedcount AS kept (key, value, ends_at) VALUES (%s, %s, now() + make_interval(secs => %s))
ON CONFLICT (key) DO UPDATE SET value = excluded.value, ends_at = excluded.ends_at
"""
ADD = SET + " WHERE kept.ends_at <= now()"
TOUCH = (
    "UPDATE dpal_site_cachedcount SET ends_at = now() + make_interval(secs => %s) WHERE key = %s AND ends_at > now()"
)


class CountsCache(BaseCache):
    """Django's cache interface over a table that keeps every entry to its end."""

    def __init__(self, _location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        """Return what is kept, or the default."""
        with connection.cursor() as cursor:
            cursor.execute(GET, [self._name(key, version)])
            row = cursor.fetchone()
        return default if row is None else json.loads(row[0])

    def set(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        """Keep a value."""
        self._run(SET, [self._name(key, version), json.dumps(value), self._seconds(timeout)])

    def add(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Keep a value where none is, and say whether this call did: of many at once one does."""
        return self._run(ADD, [self._name(key, version), json.dumps(value), self._seconds(timeout)])

    def touch(self, key: str, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Keep a value for longer."""
        return self._run(TOUCH, [self._seconds(timeout), self._name(key, version)])

    def delete(self, key: str, version: int | None = None) -> bool:
        """Forget one."""
        return self._run("DELETE FROM dpal_site_cachedcount WHERE key = %s", [self._name(key, version)])

    def clear(self) -> None:
        """Forget all."""
        self._run("DELETE FROM dpal_site_cachedcount", [])

    def _run(self, statement: str, values: list[Any]) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            changed: int = cursor.rowcount
        return changed > 0

    def _name(self, key: str, version: int | None) -> str:
        made: str = self.make_and_validate_key(key, version=version)
        return hashlib.blake2b(made.encode(), digest_size=32).hexdigest()

    def _seconds(self, timeout: Any) -> float:
        ends = self.get_backend_timeout(timeout)
        return LONGEST_SECONDS if ends is None else min(ends - time.time(), LONGEST_SECONDS)


def forget_old_counts() -> int:
    """Delete what is over; return how many rows that were."""
    forgotten = 0
    with connection.cursor() as cursor:
        for table in ("dpal_site_cachedcount", "dpal_site_guesscount"):
            cursor.execute(f"DELETE FROM {table} WHERE ends_at < now()")  # noqa: S608 - the two names above
            forgotten += cursor.rowcount
    return forgotten
