"""What a reservation promised survives the death of the database server, and the counter is never ahead of it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dpal_site.embedded import host
from dpal_site.embedded.postgres import EmbeddedPostgres
from dpal_site.embedded.servers import REPOSITORY

pytestmark = pytest.mark.faults
SPENDER = Path(__file__).with_name("spender.py")
OPEN = """
import django; django.setup()
from privacy.services import ledger
ledger.open_account(scope="pool", label="Pool", unit="record", filter="zcdp", epsilon_limit=9, delta_limit=1e-6,
                    actor="ada", reason="opened for a test")
"""
KEYS = """
import django; django.setup()
from privacy.models import LedgerEntry
for entry in LedgerEntry.objects.filter(kind="reserve"):
    print(entry.idempotency_key)
"""


def run(environment: dict[str, str], *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_reservation_that_came_back_stands_after_the_server_was_killed(tmp_path):
    server = EmbeddedPostgres(tmp_path / "postgres")
    server.start()
    try:
        environment = os.environ | {
            "DATABASE_URL": server.url(),
            "DPAL_VAR": str(tmp_path),
            "DPAL_NO_SERVERS": "1",
            "CELERY_BROKER_URL": "memory://",
            "SECRET_KEY": "a key for a test",
            "PSEUDONYM_KEY": "another key for a test",
            "PYTHONPATH": str(REPOSITORY),
            "DJANGO_SETTINGS_MODULE": "dpal_site.settings",
        }
        run(environment, "manage.py", "migrate", "privacy", "--verbosity", "0")
        run(environment, "-c", OPEN)
        spender = subprocess.Popen(
            [sys.executable, SPENDER, "pool"], env=environment, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
        )
        returned = {spender.stdout.readline().strip() for _ in range(40)}
        os.kill(server.pid, signal.SIGKILL)
        returned |= {line.strip() for line in spender.communicate(timeout=30)[0].splitlines()}
        assert host.wait_until(lambda: server.status == "stopped", 10, poll_seconds=0.01)
        server.start()
        standing = set(run(environment, "-c", KEYS).split())
        # Four threads may each have lost the answer to one reservation that stands; nothing else may differ.
        assert returned <= standing
        verdict = json.loads(run(environment, "manage.py", "audit_ledger", "--json"))
        assert verdict["sound"]
        assert verdict["entries"] == len(standing) + 1
    finally:
        server.stop()
