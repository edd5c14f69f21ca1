"""Processes that do private operations, forked from one that has loaded Django already."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from dpal_site.embedded.postgres import EmbeddedPostgres
from tests.counting import new_counter
from tests.owning import site_url

OPERATION = Path(__file__).with_name("operation.py")


class Processes:
    def __init__(self, starter: "subprocess.Popen[str]") -> None:
        self.starter = starter
        self.counter = ""

    def start(self, job: str, **given: Any) -> int:
        child: int = self._ask({"start": job, "counter": self.counter, "given": given})
        return child

    def wait(self, child: int) -> tuple[int, Any]:
        code, result = self._ask({"wait": child})
        return code, result

    def run(self, job: str, **given: Any) -> Any:
        code, result = self.wait(self.start(job, **given))
        assert code == 0
        return result

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self.starter.stdin is not None
        assert self.starter.stdout is not None
        self.starter.stdin.write(json.dumps(question) + "\n")
        self.starter.stdin.flush()
        return json.loads(self.starter.stdout.readline())


@contextmanager
def processes_on(database_url: str, counter: Path, owner_url: str = "") -> Iterator[Processes]:
    environment = os.environ | {
        "DATABASE_URL": database_url,
        "DATABASE_OWNER_URL": owner_url,
        "CELERY_BROKER_URL": "memory://",
        "SECRET_KEY": settings.SECRET_KEY,
        "PSEUDONYM_KEY": settings.PSEUDONYM_KEY,
        "SIGNING_KEY": settings.SIGNING_KEY,
        "PYTHONPATH": str(settings.BASE_DIR),
    }
    command = [sys.executable, str(OPERATION)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        found = Processes(starter)
        found.counter = str(counter)
        yield found
        assert starter.stdin is not None
        starter.stdin.close()


@pytest.fixture(autouse=True)
def counter_path(settings, tmp_path: Path) -> Path:
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
    return settings.LEDGER_COUNTER_PATH


@pytest.fixture(scope="module")
def _processes(embedded_servers, tmp_path_factory) -> Iterator[Processes]:
    with processes_on(embedded_servers.database_url, tmp_path_factory.mktemp("counter")) as found:
        yield found


@pytest.fixture
def processes(_processes: Processes, counter_path: Path) -> Processes:
    _processes.counter = str(counter_path)
    return _processes


@pytest.fixture(scope="module")
def durable(tmp_path_factory) -> Iterator[tuple[EmbeddedPostgres, Processes]]:
    folder = tmp_path_factory.mktemp("durable")
    server = EmbeddedPostgres(folder / "postgres")
    server.start()
    try:
        with processes_on(site_url(server.url()), folder / "ledger-counter.json", server.url()) as found:
            found.run("migrate")
            yield server, found
    finally:
        server.stop()
