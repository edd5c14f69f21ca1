"""Work that several threads do at once, each over a database connection of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

BLOCKED = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"


def at_once(*works: Callable[[], Any], refusals: tuple[type[Exception], ...] = ()) -> list[Any]:
    """Run the works in threads that begin together; return their results, or the class of a refusal."""
    together = threading.Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        try:
            together.wait(timeout=120)
            return work()
        except refusals as refusal:
            return type(refusal)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def wait_until_blocked() -> None:
    """Wait until another session waits for a lock of this one."""
    pause = threading.Event()
    for _attempt in range(6000):
        with connection.cursor() as cursor:
            cursor.execute(BLOCKED)
            if cursor.fetchone()[0]:
                return
        pause.wait(0.01)
    raise AssertionError("nobody waits")
