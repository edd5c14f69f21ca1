import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from secrets import token_hex
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from psycopg import sql

from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.models import Job, Project, WorkState
from annotation.work.services import jobs
from dpal_site.demo import plans, stage
from dpal_site.embedded import host
from dpal_site.embedded.processes import Supervisor
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.management.commands import demo as command
from tests import learning

pytestmark = pytest.mark.faults


class SmallSite(Supervisor):
    """The demo's web and label process, of one worker each; what Celery's processes would do is done here."""

    def start_web_and_label(self, port: int | None = None, workers: int = 1) -> str:
        return super().start_web_and_label(port, workers=1)

    def start_workers(self, concurrency: int = 1) -> None:
        """What a worker would do is done whenever the demo asks what has ended, twice a second."""

    def start_beat(self) -> None:
        """Nobody has to be sent anything."""

    def ended(self) -> list[str]:
        for job in Job.objects.filter(kind=jobs.IMPORT, state=WorkState.WAITING):
            datasets.import_dataset(job_id=job.pk)
        for job in Job.objects.filter(kind=jobs.GATE, state=WorkState.WAITING):
            gates.run_gate(job_id=job.pk)
        for project in Project.objects.order_by("pk"):
            learning.work_off(project)
        return super().ended()


def small_plans() -> list[plans.ProjectPlan]:
    few = {"round_size": 4, "labels_per_release": 4, "overlap": 1}
    digits, voice = plans.digits_plan(), plans.voice_plan(contributors=5000)
    return [
        replace(digits, settings=digits.settings | {"selection_rate": 0.02}, releases=1),
        replace(voice, settings=voice.settings | few, releases=1, task=replace(voice.task, label_counts=(4,))),
    ]


@pytest.fixture
def small_demo(
    transactional_db: None,
    embedded_servers: Any,
    broker: str,
    collected_static_files: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[None]:
    database = embedded_servers.database_url.rpartition("/")[2].partition("?")[0]
    role = f"demo_{database}"
    _, _, address = embedded_servers.database_url.rpartition("@")
    environment = {
        "DATABASE_URL": embedded_servers.database_url,
        "CELERY_BROKER_URL": broker,
        "SECRET_KEY": settings.SECRET_KEY,
        "PSEUDONYM_KEY": settings.PSEUDONYM_KEY,
        "SIGNING_KEY": settings.SIGNING_KEY,
        "LEDGER_COUNTER_PATH": str(settings.LEDGER_COUNTER_PATH),
    }
    monkeypatch.setenv("LABEL_DATABASE_URL", f"postgresql://{role}:{token_hex(16)}@{address}")
    monkeypatch.setenv("WORK_LEASE_SECONDS", "6")
    monkeypatch.setattr(command, "Supervisor", partial(SmallSite, environment=environment, grace_seconds=5))
    monkeypatch.setattr(command, "PATIENCE_SECONDS", 180)
    monkeypatch.setattr(command, "default_plans", small_plans)
    monkeypatch.setattr(stage, "ANNOTATORS", stage.ANNOTATORS[:1])
    yield
    with psycopg.connect(embedded_servers.owner_url, autocommit=True) as connection:
        # Roles belong to the whole server, which other runs share.
        for form in ("DROP OWNED BY {}", "DROP ROLE {}"):
            connection.execute(sql.SQL(form).format(sql.Identifier(role)))


@pytest.mark.slow
def test_a_small_demo_ends_with_its_table(small_demo: None) -> None:
    """Web and label process apart, as `make demo` starts them; its people read pages and send forms over HTTP."""
    said = StringIO()
    call_command("demo", "--exit", "--port", str(host.free_port()), stdout=said)
    labels = [int(found) for found in re.findall(r"^  release 1 +(\d+) ", said.getvalue(), re.MULTILINE)]
    # Coins that come up twice in a hundred of 1,437 throws give six at least, but once in ten million times.
    assert (len(labels), labels[0] >= 6, labels[1]) == (2, True, 4), said.getvalue()
    for beaten in ("random choice, same epsilon", "no privacy", "always the same class"):
        assert len(re.findall(rf"^  {beaten} .*%.*%$", said.getvalue(), re.MULTILINE)) == 2
    assert len(re.findall(r"^  version 0", said.getvalue(), re.MULTILINE)) == 1
    for name in ("Digits", "Voice requests"):
        assert re.search(rf"^{name}: (LOST in this run: )?the last release ", said.getvalue(), re.MULTILINE)
    assert re.search(r"^\d+ answers in ", said.getvalue(), re.MULTILINE)
    assert "Reservations not settled: 0." in said.getvalue()


def worker_of(demo: int) -> int:
    pattern = "celery -A dpal_site.celery:app worker"
    found = subprocess.run(["pgrep", "-P", str(demo), "-f", pattern], capture_output=True)
    return int(found.stdout.split()[0])


@pytest.mark.slow
def test_the_demo_ends_with_its_releases_though_its_worker_dies(tmp_path):
    environment = {**os.environ, "DPAL_VAR": str(tmp_path / "var"), "DPAL_NO_SERVERS": "", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "manage.py", "demo", "--exit", "--port", str(host.free_port())]
    said: list[str] = []
    killed = False
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        for line in demo.stdout:
            said.append(line)
            if "release 1, " in line and not killed:
                killed = True
                os.kill(worker_of(demo.pid), signal.SIGKILL)
    output = "".join(said)
    assert demo.returncode == 0, output
    assert "The worker process ended; starting it again." in output
    assert re.findall(r"^  release (\d) ", output, re.MULTILINE) == ["1", "2", "1", "2", "3"]
    assert "Reservations not settled: 0." in output
