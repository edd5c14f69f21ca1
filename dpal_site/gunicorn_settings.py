"""How gunicorn serves the site: a few processes with threads, and one place where they count together."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from prometheus_client import multiprocess

from dpal_site.environment import AT_LEAST_ONE, env

workers = env.int("WEB_CONCURRENCY", 2, validate=AT_LEAST_ONE)
# Threads keep a process answering while one request waits for the database, or for the body of an upload.
worker_class = "dpal_site.serving.worker.WholeRequestWorker"
threads = env.int("WEB_THREADS", 4, validate=AT_LEAST_ONE)
# What waits, and not in a thread; below the 1024 files that most systems let a process open.
worker_connections = 512
keepalive = 30
# Every view is imported once, before there are processes: half the time to start, and memory that they share.
preload_app = True
timeout = 90
control_socket_disable = True
logger_class = "dpal_site.monitoring.server_log.ServerLog"
# The heartbeat file must not wait for a disk.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108

# The settings give a page's statements a time limit.
os.environ["DPAL_SERVES_PAGES"] = "1"
# Where the processes of this server count together; of no use to any other.
os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="dpal-metrics-")


def post_worker_init(worker: Any) -> None:
    """Let what was deleted elsewhere while this host stood still go from it as well."""
    from annotation.files import services as files  # noqa: PLC0415 - loads models

    files.begin()


def on_exit(server: Any) -> None:
    """Leave nothing behind."""
    shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)


def child_exit(server: Any, worker: Any) -> None:
    """Keep what an ended process counted, but not what it was in the middle of."""
    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
