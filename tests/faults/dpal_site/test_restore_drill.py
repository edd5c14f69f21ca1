import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from django.conf import settings

from dpal_site.embedded.postgres import EmbeddedPostgres
from dpal_site.embedded.servers import REPOSITORY
from tests.owning import site_url

pytestmark = pytest.mark.faults
WORKER = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())["services"]["worker"]
# What the image sets, and no single command of its making.
SET = re.search(r"^ENV PATH=.*\n.*$", (REPOSITORY / "Dockerfile").read_text(), re.MULTILINE)[0]
IMAGE = dict(re.findall(r"(DPAL_\w+|LOG_FORMAT)=(\S+)", SET))
# Volumes a backup holds beside the database's copy, as the table of docs/operations.md has it.
BACKED_UP = ("files",)
SPEND = """
import sys, uuid
import django
django.setup()
from privacy.accounting.events import GaussianEvent
from privacy.errors import PrivacyError
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import guarantee
from privacy.ledger import services as ledger
scope, times = sys.argv[1], int(sys.argv[2])
terms = dict(label="pool", unit="record", filter="zcdp", epsilon_limit=9, delta_limit=1e-6, actor="ada", reason="drill")
try:
    account = BudgetAccount.objects.filter(scope=scope).first() or ledger.open_account(scope=scope, **terms)
    for _ in range(times):
        event = GaussianEvent(sensitivity_l2=1.0, sigma=20.0)
        ledger.reserve(account=account, event=event, purpose="a drill", key=uuid.uuid4())
except PrivacyError as error:
    sys.exit(f"refused: {error}")
print(guarantee(account).sequence)
"""

WITNESSED = """
import django
django.setup()
from datetime import timedelta
from annotation.models import Role
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from privacy.ledger.models import BudgetAccount
from privacy.ledger.checkpoints import site_key
from tests.factories import add_members, make_project, make_user
project, person = make_project(pool_account=BudgetAccount.objects.get(scope="pool")), make_user()
add_members(project, person, role=Role.ENGINEER)
made = tokens.create_token(user=person, name="t", scopes=[Scope.LEDGER_READ], lifetime=timedelta(days=1))
print(project.slug, made[1], site_key().public_key)
"""
SERVE = """
from wsgiref.simple_server import make_server
from dpal_site.wsgi import application
with make_server("127.0.0.1", 0, application) as server:
    print(server.server_port, flush=True)
    server.serve_forever()
"""


class Drill:
    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        self.server, self.folder = server, folder
        mounts = [mount.split(":")[:2] for mount in WORKER["volumes"]]
        self.volumes = {name: folder / "volumes" / name for name, _ in mounts}
        for volume in self.volumes.values():
            volume.mkdir(parents=True)
        assert IMAGE["DPAL_VAR"] in {place for _, place in mounts}
        given = {key: re.sub(r"\$\{\w+:-(.*)\}", r"\1", str(value)) for key, value in WORKER["environment"].items()}
        given = IMAGE | {key: value for key, value in given.items() if not key.endswith("_FILE") and value}
        # The longest first: one folder's name begins with another's.
        for name, place in sorted(mounts, key=lambda mount: -len(mount[1])):
            given = {key: value.replace(place, str(self.volumes[name])) for key, value in given.items()}
        self.environment = given | {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "DJANGO_SETTINGS_MODULE": "dpal_site.settings",
            "DATABASE_URL": site_url(server.url(), "dpal_drill_site"),
            "CELERY_BROKER_URL": "memory://",
            "SECRET_KEY": settings.SECRET_KEY,
            "PSEUDONYM_KEY": settings.PSEUDONYM_KEY,
            "SIGNING_KEY": settings.SIGNING_KEY,
        }

    def run(self, *command: str, owner: bool = False) -> "subprocess.CompletedProcess[str]":
        told = {"DATABASE_OWNER_URL": self.server.url()} if owner else {}
        return subprocess.run(
            [sys.executable, *command], cwd=REPOSITORY, env=self.environment | told, capture_output=True, text=True
        )

    def manage(self, *command: str, owner: bool = False) -> str:
        done = self.run("manage.py", *command, owner=owner)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def spend(self, scope: str, times: int = 1) -> int:
        """Spend so many times, opening the account if it is not there; return how many entries it has."""
        done = self.run("-c", SPEND, scope, str(times))
        assert done.returncode == 0, done.stdout + done.stderr
        return int(done.stdout.splitlines()[-1])

    def refused(self, scope: str) -> str:
        done = self.run("-c", SPEND, scope, "1")
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stderr.rpartition("refused: ")[2]

    def back_up(self, *volumes: str) -> None:
        self._postgres("pg_dump", "--format=custom", "--file", str(self.folder / "dpal.dump"))
        for name in volumes:
            shutil.copytree(self.volumes[name], self.folder / "backup" / name)

    def back_up_again(self, *volumes: str) -> None:
        shutil.rmtree(self.folder / "backup")
        self.back_up(*volumes)

    def put_back(self, *volumes: str) -> None:
        words = ("--clean", "--if-exists", "--no-owner", "--no-privileges", str(self.folder / "dpal.dump"))
        self._postgres("pg_restore", *words)
        for name in volumes:
            shutil.rmtree(self.volumes[name])
            shutil.copytree(self.folder / "backup" / name, self.volumes[name])
        # What `docker compose up` does first.
        self.manage("prepare_database", owner=True)

    def _postgres(self, program: str, *words: str) -> None:
        command = [str(self.server._binaries / program), "--dbname", self.server.url(), *words]
        subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def drill(tmp_path):
    server = EmbeddedPostgres(tmp_path / "postgres", durable=False)
    server.start()
    try:
        found = Drill(server, tmp_path)
        found.manage("prepare_database", owner=True)
        assert found.spend("pool", 2) == 3
        found.back_up(*BACKED_UP, *(name for name in found.volumes if name == "counter"))
        assert found.spend("pool", 3) == 6
        yield found
    finally:
        server.stop()


@pytest.mark.slow
def test_a_restore_gives_nothing_back(drill):
    """The counter lay in the volume that is put back with the database, and epsilon 14.49 became 2.30."""
    drill.put_back(*BACKED_UP)
    assert "old copy" in drill.refused("pool")
    # For the same people under another name neither.
    assert "old copy" in drill.refused("another")
    audit = drill.run("manage.py", "audit_ledger")
    assert audit.returncode == 1
    assert "6 as the counter says" in audit.stdout
    # Whoever has seen it closes what is short, and the site goes on without it.
    assert "pool: closed, it had 6 entries" in drill.manage("ledger_counter", "close")
    assert drill.spend("another") == 2
    assert "closed" in drill.refused("pool")
    assert "1 closed after entries were lost" in drill.manage("audit_ledger")


@pytest.mark.slow
def test_a_site_without_its_counter_admits_nothing_until_a_reason_is_given(drill):
    for file in drill.volumes["counter"].iterdir():
        file.unlink()
    drill.manage("prepare_database", owner=True)
    assert not list(drill.volumes["counter"].glob("*.json"))
    assert "is missing" in drill.refused("pool")
    assert drill.run("manage.py", "audit_ledger").returncode == 1
    assert drill.run("manage.py", "ledger_counter", "begin", owner=True).returncode == 1
    told = drill.manage("ledger_counter", "begin", "--trust-database", "its disk burnt", owner=True)
    assert "its disk burnt" in told
    assert drill.spend("pool") == 7
    assert "its disk burnt" in drill.manage("audit_ledger")


@pytest.mark.slow
def test_a_backup_that_holds_the_counter_would_forget(drill):
    """The drill can fail, and this is why no backup may take the counter along."""
    drill.put_back(*BACKED_UP, "counter")
    assert drill.spend("pool") == 4


@pytest.mark.slow
def test_what_was_put_back_in_time_goes_on(drill):
    """A backup that holds all that was spent is no old copy."""
    drill.back_up_again(*BACKED_UP)
    drill.put_back(*BACKED_UP)
    assert drill.spend("pool") == 7
    assert "counter outside the database: sound" in drill.manage("audit_ledger")


@contextmanager
def served(drill):
    command = [sys.executable, "-c", SERVE]
    with subprocess.Popen(command, cwd=REPOSITORY, env=drill.environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


@pytest.mark.slow
def test_a_witness_elsewhere_notices_what_a_backup_with_the_counter_would_forget(drill):
    """The one restore that the site itself cannot see, made by Postgres's own programs."""
    done = drill.run("-c", WITNESSED)
    assert done.returncode == 0, done.stderr
    slug, secret, key = done.stdout.split()
    drill.back_up_again(*BACKED_UP, "counter")
    kept = drill.folder / "elsewhere" / "seen.json"

    def look(address):
        call = ["witness", address, slug, "--public-key", key, "--keep", str(kept)]
        told = {"PATH": os.environ["PATH"], "DPAL_TOKEN": secret}
        return subprocess.run(
            [sys.executable, "-m", "privacy.audit", *call], cwd=REPOSITORY, env=told, capture_output=True, text=True
        )

    with served(drill) as address:
        assert "pool: 6 entries" in look(address).stdout
        assert drill.spend("pool", 3) == 9
        assert "pool: 9 entries" in look(address).stdout
    drill.put_back(*BACKED_UP, "counter")
    assert "counter outside the database: sound" in drill.manage("audit_ledger")
    with served(drill) as address:
        cut = look(address)
        assert cut.returncode == 1
        assert "ROLLBACK" in cut.stderr
        assert "9 entries were seen, 6 are shown" in cut.stderr
        assert drill.spend("pool", 4) == 10
        grown = look(address)
        assert grown.returncode == 1
        assert "FORK" in grown.stderr
