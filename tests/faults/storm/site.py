"""A whole site that can be killed piece by piece: servers of its own, web server, worker and clock."""

import contextlib
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import psycopg
import redis

from dpal_site.embedded import host
from dpal_site.embedded.postgres import EmbeddedPostgres
from dpal_site.embedded.processes import Supervisor
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.embedded.valkey import EmbeddedValkey
from tests.owning import site_url

LEASE_SECONDS = 3
EMPTIED_BELOW_SECONDS = 0.5
# Below the ports that outgoing connections get: who knocks on a dead server's port must not meet itself there.
PORTS = range(15_000, 30_000)


def quiet_port(taken: set[int]) -> int:
    start = secrets.randbelow(len(PORTS))
    for place in range(len(PORTS)):
        port = PORTS[(start + place) % len(PORTS)]
        if port not in taken and host.port_is_free(port):
            taken.add(port)
            return port
    raise AssertionError("no port is free")


class Processes:
    processes: Supervisor
    # For a machine that does other things, too: a process may take half a minute to start there.
    patience_seconds = 300

    def kill_process(self, name: str, rng: random.Random) -> str:
        """Kill a process with its children, or alone, or one of its children; return which."""
        pid = self.processes.pid(name)
        children = descendants(pid)
        what = rng.choice(["all", "alone", "child"] if children else ["all"])
        victim = rng.choice(children) if what == "child" else pid
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if what == "all" else os.kill)(victim, signal.SIGKILL)
        return what

    def start_all(self, port: int) -> None:
        self.processes.start_web(port)
        self.processes.start_worker(concurrency=2)
        self.processes.start_beat()
        self.processes.wait_until_ready(240)


class BorrowedSite(Processes):
    """Processes of its own on the servers that all tests share: its connections to them are cut, they stay."""

    def __init__(self, processes: Supervisor, owner_url: str, broker_url: str) -> None:
        self.processes = processes
        self._owner_url, self._broker_url = owner_url, broker_url

    @property
    def url(self) -> str:
        return self.processes.url

    def ask(self, query: str) -> list[Any]:
        with psycopg.connect(self._owner_url, connect_timeout=60) as connection:
            return connection.execute(query).fetchall()  # type: ignore[arg-type]

    def strike_postgres(self, dead_for: float) -> None:
        self.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    def strike_broker(self, dead_for: float) -> None:
        with redis.Redis.from_url(self._broker_url) as client:
            client.flushdb()


class OwnSite(Processes):
    """Servers of its own as well; use it as a context manager, so that nothing of it is left afterwards.

    `told` is what the environment of its processes says beside.
    """

    def __init__(self, folder: Path, told: dict[str, str] | None = None) -> None:
        taken: set[int] = set()
        self.folder = folder
        self.postgres = EmbeddedPostgres(folder / "postgres", quiet_port(taken))
        self.valkey = EmbeddedValkey(folder / "valkey", quiet_port(taken))
        self.web_port = quiet_port(taken)
        self.environment: dict[str, str] = {}
        self._told = told or {}

    def __enter__(self) -> Self:
        self._stack = contextlib.ExitStack()
        with self._stack:
            self._stack.callback(self.valkey.stop)
            self._stack.callback(self.postgres.stop)
            self.postgres.start()
            self.valkey.start()
            self.environment = self._environment()
            self.manage("prepare_database", "--verbosity", "0")
            self.manage("collectstatic", "--no-input", "--verbosity", "0")
            self.processes = self._stack.enter_context(
                Supervisor(self.folder / "log", environment=self.environment, grace_seconds=5)
            )
            # What the stack holds so far outlives this block.
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        return f"http://{host.LOOPBACK}:{self.web_port}"

    def manage(self, *words: str) -> str:
        return self.python("manage.py", *words)

    def python(self, *words: str, given: str = "") -> str:
        """Run Python in the site's environment; what it prints on a failure is in the error."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=REPOSITORY,
            env=os.environ | self.environment,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"{words} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def ask(self, query: str) -> list[Any]:
        with psycopg.connect(self.postgres.url(), connect_timeout=10) as connection:
            return connection.execute(query).fetchall()  # type: ignore[arg-type]

    def strike_postgres(self, dead_for: float) -> None:
        pid = self.postgres.pid
        assert pid is not None
        for victim in (pid, *descendants(pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        assert host.wait_until(lambda: self.postgres.status == "stopped", 60)
        time.sleep(dead_for)
        self.postgres.start()

    def strike_broker(self, dead_for: float) -> None:
        if dead_for < EMPTIED_BELOW_SECONDS:
            with contextlib.suppress(redis.RedisError), redis.Redis.from_url(self.valkey.url()) as client:
                client.flushall()
            return
        pid = self.valkey.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert host.wait_until(lambda: self.valkey.status == "stopped", 60)
        time.sleep(dead_for)
        self.valkey.start()

    def _environment(self) -> dict[str, str]:
        given = {
            "DATABASE_URL": site_url(self.postgres.url()),
            "DATABASE_OWNER_URL": self.postgres.url(),
            "CELERY_BROKER_URL": self.valkey.url(),
            "DPAL_VAR": str(self.folder / "var"),
            "DPAL_STATIC": str(self.folder / "static"),
            "DPAL_NO_SERVERS": "",
            "DJANGO_SETTINGS_MODULE": "dpal_site.settings",
            "PYTHONPATH": str(REPOSITORY),
            "WORK_LEASE_SECONDS": str(LEASE_SECONDS),
            "API_REQUESTS_PER_MINUTE": "1000000",
            "CANARY_TRIALS": "40",
            "LEDGER_COUNTER_PATH": str(self.folder / "ledger-counter.json"),
        }
        keys = {name: secrets.token_hex(32) for name in ("SECRET_KEY", "PSEUDONYM_KEY", "SIGNING_KEY")}
        return given | keys | self._told


def descendants(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(child): int(parent) for child, parent in (line.split() for line in listed.splitlines())}
    found, left = [], [pid]
    while left:
        parent = left.pop(0)
        below = sorted(child for child, above in parents.items() if above == parent)
        found += below
        left += below
    return found
