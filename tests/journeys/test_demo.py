"""The demonstration as a stranger runs it, its worker killed on the way."""

import os
import re
import signal
import subprocess
import sys

import pytest

from dpal_site.embedded import host
from dpal_site.embedded.servers import REPOSITORY

pytestmark = [pytest.mark.faults, pytest.mark.slow]


def worker_of(demo: int) -> int:
    """Return the process id of the demo's worker."""
    pattern = "celery -A dpal_site.celery:app worker"
    found = subprocess.run(["pgrep", "-P", str(demo), "-f", pattern], capture_output=True)
    return int(found.stdout.split()[0])


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
    assert table == [
        ("Digits", "1", "40"),
        ("Digits", "2", "80"),
        ("Digits", "3", "120"),
        *[("Voice queries", version, labels) for _, version, labels in table[3:]],
    ]
    assert [version for _, version, _ in table] == ["1", "2", "3"] * 2
    assert "Reservations not settled: 0." in output
