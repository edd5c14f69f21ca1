"""The demonstration: small and with one release; and as a stranger runs it, its worker killed on the way."""

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
from annotation.gates.services import runs
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
            runs.run_gate(job_id=job.pk)
        for project in Project.objects.order_by("pk"):
            learning.work_off(project)
        return super().ended()


def small_plans() -> list[plans.ProjectPlan]:
    few = {"round_size": 4, "labels_per_release": 4}
    digits, voice = plans.digits_plan(), plans.voice_plan(contributors=3000)
    return [
        replace(
            digits,
            settings=digits.settings | {"selection_rate": 0.08},
            companion_settings=digits.companion_settings | few,
        ),
        replace(voice, settings=voice.settings | few | {"overlap": 1}),
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
    """Let the demo run on the test's servers with a few questions, its label process under its own role."""
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
    for module in (plans, stage):
        monkeypatch.setattr(module, "RELEASES", 1)
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
    table = re.findall(r"^(Digits|Voice queries) +(\d+) +(\d+) ", said.getvalue(), re.MULTILINE)
    assert [row[:2] for row in table] == [("Digits", "1"), ("Voice queries", "1")], said.getvalue()
    # Coins that come up eight times in a hundred of 239 throws give two at least, but once in ten million times.
    assert int(table[0][2]) >= 2
    assert table[1][2] == "4"
    # What the same answers teach without privacy stands beside the crowd's release, as a share of its public test set.
    (voice,) = re.findall(r"^Voice queries  .*$", said.getvalue(), re.MULTILINE)
    assert len(re.findall(r"\d+\.\d ± \d+\.\d %", voice)) == 3
    (digits,) = re.findall(r"^Digits  .*$", said.getvalue(), re.MULTILINE)
    assert len(re.findall(r"\d+\.\d ± \d+\.\d %", digits)) == 2
    # Whether choosing helped is said of each, with the difference that the table shows.
    for name, row in (("Voice queries", voice), ("Digits", digits)):
        chosen, random = (float(share) for share in re.findall(r"(\d+\.\d) ± \d+\.\d %", row)[:2])
        (gain,) = re.findall(
            rf"^{name}: in this run .* (?:as good as|better than|worse than) .* \((.*) points\)\.$",
            said.getvalue(),
            re.MULTILINE,
        )
        assert abs(float(gain) - (chosen - random)) < 0.11
    assert re.search(r"^\d+ answers in ", said.getvalue(), re.MULTILINE)
    assert "Reservations not settled: 0." in said.getvalue()


def worker_of(demo: int) -> int:
    """Return the process id of the demo's worker."""
    pattern = "celery -A dpal_site.celery:app worker"
    found = subprocess.run(["pgrep", "-P", str(demo), "-f", pattern], capture_output=True)
    return int(found.stdout.split()[0])


@pytest.mark.slow
def test_the_demo_ends_with_three_releases_though_its_worker_dies(tmp_path):
    environment = {**os.environ, "DPAL_VAR": str(tmp_path / "var"), "DPAL_NO_SERVERS": "", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "manage.py", "demo", "--exit", "--port", str(host.free_port())]
    said: list[str] = []
    killed = False
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        for line in demo.stdout:
            said.append(line)
            if "version 1 released" in line and not killed:
                killed = True
                os.kill(worker_of(demo.pid), signal.SIGKILL)
    output = "".join(said)
    assert demo.returncode == 0, output
    assert "The worker process ended; starting it again." in output
    table = re.findall(r"^(Digits|Voice queries) +([123]) +(\d+) ", output, re.MULTILINE)
    assert [row[:2] for row in table] == [
        (name, str(version)) for name in ("Digits", "Voice queries") for version in (1, 2, 3)
    ]
    # A tenth of 239 records in the first block.
    assert all(int(labels) >= 5 for name, _, labels in table if name == "Digits")
    assert "Reservations not settled: 0." in output
