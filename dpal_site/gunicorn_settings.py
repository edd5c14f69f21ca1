"""How gunicorn serves the site: a few processes with threads, and one place where they count together."""

import os
import shutil
from pathlib import Path
from typing import Any

from prometheus_client import multiprocess

from dpal_site.embedded import servers

workers = int(os.environ.get("WEB_CONCURRENCY", 2))
# Threads keep a process answering while one request waits for the database.
worker_class = "gthread"
threads = int(os.environ.get("WEB_THREADS", 4))
keepalive = 30
control_socket_disable = True
# The heartbeat file must not wait for a disk.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108

_metrics = servers.var_dir() / "metrics" / str(os.getpid())
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(_metrics)


def on_starting(server: Any) -> None:
    """Begin to count from nothing, as a restarted process does."""
    shutil.rmtree(_metrics.parent, ignore_errors=True)
    _metrics.mkdir(parents=True, mode=0o700)


def child_exit(server: Any, worker: Any) -> None:
    """Keep what an ended process counted, but not what it was in the middle of."""
    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
