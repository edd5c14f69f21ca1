"""No crash between reserving and publishing gives budget back, or lets an output out that is not paid for."""

import hashlib
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction

from privacy import selectors
from privacy.accounting.events import GaussianEvent
from privacy.models import BudgetAccount, LedgerEntry
from privacy.services import entries, ledger
from privacy.services.audit import audit_accounts
from privacy.services.counter import site_counter

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]
OPERATION = Path(__file__).with_name("operation.py")
EVENT = GaussianEvent(sensitivity_l2=1.0, sigma=100.0)
COST_NANO = 50_001  # 1 / (2 * 100**2) in floats lies just above 50,000 and is charged rounded up
DIGEST = "ab" * 32

# The step at which the process dies, and what stands afterwards: spent?, settled?, read?, output stored?, published?
STEPS = {
    "before_reserve": (False, False, False, False, False),
    "inside_reserve": (False, False, False, False, False),
    "before_flush": (True, False, False, False, False),
    "before_counter": (True, False, False, False, False),
    "after_reserve": (True, False, False, False, False),
    "after_read": (True, False, True, False, False),
    "after_draw": (True, False, True, False, False),
    "after_output": (True, False, True, False, False),
    "inside_commit": (True, False, True, False, False),
    "commit:before_counter": (True, True, True, True, False),
    "before_publish": (True, True, True, True, False),
    "after_publish": (True, True, True, True, True),
}


@pytest.fixture(autouse=True)
def counter_path(settings, tmp_path) -> Path:
    settings.LEDGER_COUNTER_PATH = tmp_path / "ledger-counter.json"
    return settings.LEDGER_COUNTER_PATH


@pytest.fixture
def account() -> BudgetAccount:
    return ledger.open_account(
        scope=f"test:{uuid4()}",
        label="Test pool",
        unit="record",
        filter="zcdp",
        epsilon_limit=1.0,
        delta_limit=1e-6,
        actor="ada",
        reason="opened for a test",
    )


def run_operation(folder: Path, account: BudgetAccount, key: UUID, database_url: str, die_at: str) -> int:
    environment = os.environ | {
        "DATABASE_URL": database_url,
        "SECRET_KEY": settings.SECRET_KEY,
        "PSEUDONYM_KEY": settings.PSEUDONYM_KEY,
        "LEDGER_COUNTER_PATH": str(settings.LEDGER_COUNTER_PATH),
        "PYTHONPATH": str(settings.BASE_DIR),
        "DPAL_FAULT_POINT": die_at,
    }
    command = [sys.executable, OPERATION, folder, account.scope, str(key)]
    return subprocess.run(command, env=environment, check=False, timeout=60).returncode


def assert_sound(account: BudgetAccount) -> None:
    (verdict,) = audit_accounts(scope=account.scope, marks=site_counter().marks())
    assert not verdict.differing, verdict.differences


@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_at_any_step(account, tmp_path, embedded_servers, step):
    spent, settled, read, stored, published = STEPS[step]
    key = uuid4()
    assert run_operation(tmp_path, account, key, embedded_servers.database_url, step) == -signal.SIGKILL

    last = selectors.last_entry(account)
    assert last.rho_spent_nano == spent * COST_NANO
    assert last.open_reservations == (spent and not settled)
    assert (tmp_path / "read").exists() == read
    outputs = [group.name for group in Group.objects.all()]
    digests = [hashlib.sha256(output.encode()).hexdigest() for output in outputs]
    assert len(outputs) == stored
    assert digests == [entry.output_digest for entry in LedgerEntry.objects.filter(kind="commit")]
    assert (tmp_path / "published").exists() == published
    assert_sound(account)

    # What was left open is charged, and stays spent; the key of the dead attempt never pays again.
    assert ledger.charge_stale(older_than=timedelta(0)) == (spent and not settled)
    again = ledger.reserve(account=account, event=EVENT, purpose="a test", key=key)
    assert selectors.last_entry(account).rho_spent_nano == COST_NANO
    assert again.kind == "reserve"
    assert_sound(account)


def test_a_process_nobody_kills(account, tmp_path, embedded_servers):
    assert run_operation(tmp_path, account, uuid4(), embedded_servers.database_url, "") == 0
    assert (tmp_path / "published").exists()
    assert_sound(account)


def cut_connection() -> None:
    """Have the server drop this thread's connection, as a failing server or an impatient administrator would."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            assert cursor.fetchone() == (True,)
    finally:
        other.close()


def store_with_commit(reservation: LedgerEntry) -> None:
    with transaction.atomic():
        Group.objects.create(name="output")
        ledger.commit(reservation=reservation, output_digest=DIGEST)


@pytest.fixture
def cut_at(monkeypatch):
    """Cut the connection when the ledger first reaches a step."""

    def cut(step: str) -> None:
        steps = [step]

        def fault_point(reached: str) -> None:
            if reached in steps:
                steps.remove(reached)
                cut_connection()

        for module in (ledger, entries):
            monkeypatch.setattr(module, "fault_point", fault_point)

    return cut


def test_a_connection_cut_before_the_reservation_is_durable(account, cut_at):
    cut_at("inside_reserve")
    with pytest.raises(OperationalError):
        ledger.reserve(account=account, event=EVENT, purpose="a test", key=uuid4())
    connection.close()
    assert selectors.guarantee(account).rho_spent == 0.0
    assert_sound(account)


@pytest.mark.parametrize("step", ["before_counter", "after_reserve"])
def test_a_connection_cut_after_the_reservation_is_durable(account, cut_at, step):
    cut_at(step)
    reservation = ledger.reserve(account=account, event=EVENT, purpose="a test", key=uuid4())
    connection.close()
    assert selectors.last_entry(account).pk == reservation.pk
    store_with_commit(reservation)
    assert_sound(account)


def test_a_connection_cut_before_the_commit_takes_the_output_with_it(account, cut_at):
    reservation = ledger.reserve(account=account, event=EVENT, purpose="a test", key=uuid4())
    cut_at("inside_commit")
    with pytest.raises(OperationalError):
        store_with_commit(reservation)
    connection.close()
    assert not Group.objects.exists()
    last = selectors.last_entry(account)
    assert (last.rho_spent_nano, last.open_reservations) == (COST_NANO, 1)
    assert_sound(account)
