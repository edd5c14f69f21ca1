import hashlib
import signal
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction

from privacy.accounting.events import GaussianEvent
from privacy.ledger import entries, selectors
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.counter import site_counter
from privacy.ledger.models import BudgetAccount, LedgerEntry

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]
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


def open_account(epsilon_limit: float) -> BudgetAccount:
    return ledger.open_account(
        scope=f"test:{uuid4()}",
        label="Test pool",
        unit="record",
        filter="zcdp",
        epsilon_limit=epsilon_limit,
        delta_limit=1e-6,
        actor="ada",
        reason="opened for a test",
    )


@pytest.fixture
def account() -> BudgetAccount:
    return open_account(1.0)


def assert_sound(account: BudgetAccount) -> None:
    (verdict,) = audit_accounts(scope=account.scope, marks=site_counter().marks())
    assert not verdict.differing, verdict.differences


@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_at_any_step(account, processes, tmp_path, step):
    spent, settled, read, stored, published = STEPS[step]
    key = uuid4()
    code, _ = processes.wait(
        processes.start("operate", folder=str(tmp_path), scope=account.scope, key=str(key), step=step)
    )
    assert code == -signal.SIGKILL

    last = selectors.last_entry(account)
    assert last.rho_spent_nano == spent * COST_NANO
    assert last.open_reservations == (spent and not settled)
    assert (tmp_path / "read").exists() == read
    assert len(outputs_with_their_commit()) == stored
    assert (tmp_path / "published").exists() == published
    assert_sound(account)

    # What was left open is charged, and stays spent; the key of the dead attempt never pays again.
    assert ledger.charge_stale(older_than=timedelta(0)) == (spent and not settled)
    again = ledger.reserve(account=account, event=EVENT, purpose="a test", key=key)
    assert selectors.last_entry(account).rho_spent_nano == COST_NANO
    assert again.kind == "reserve"
    assert_sound(account)


def outputs_with_their_commit() -> list[str]:
    outputs = [group.name for group in Group.objects.order_by("pk")]
    digests = [hashlib.sha256(output.encode()).hexdigest() for output in outputs]
    # Workers at the same time may store and commit in different orders, so only the pairing counts.
    commits = LedgerEntry.objects.filter(kind="commit").values_list("output_digest", flat=True)
    assert sorted(digests) == sorted(commits)
    return outputs


def operate(processes, account: BudgetAccount, folder: Path, key: UUID) -> int:
    return processes.start("operate", folder=str(folder), scope=account.scope, key=str(key))


def test_a_process_nobody_kills(account, processes, tmp_path):
    assert processes.wait(operate(processes, account, tmp_path, uuid4()))[0] == 0
    assert [(tmp_path / "published").read_text()] == outputs_with_their_commit()
    assert_sound(account)


def test_a_replay_after_the_commit_stores_and_publishes_nothing(account, processes, tmp_path):
    key = uuid4()
    first, second = (
        processes.wait(operate(processes, account, tmp_path / name, key))[0] for name in ("first", "second")
    )
    assert (first, second) == (0, 1)
    assert [(tmp_path / "first/published").read_text()] == outputs_with_their_commit()
    assert not (tmp_path / "second/published").exists()
    assert selectors.last_entry(account).rho_spent_nano == COST_NANO
    assert_sound(account)


def test_a_replay_after_a_charge_stores_and_publishes_nothing(account, processes, tmp_path):
    key = uuid4()
    held = ledger.reserve(account=account, event=EVENT, purpose="a test", key=key)
    ledger.charge(reservation=held, reason="its worker is gone")
    assert processes.wait(operate(processes, account, tmp_path / "replay", key))[0] == 1
    assert outputs_with_their_commit() == []
    assert not (tmp_path / "replay/published").exists()
    assert selectors.last_entry(account).rho_spent_nano == COST_NANO
    assert_sound(account)


def test_workers_with_the_same_key_at_the_same_time_publish_once(account, processes, tmp_path):
    """Each pair starts together; whoever commits second is refused, and its draw with it."""
    keys = [uuid4() for _ in range(4)]
    running = {
        tmp_path / f"{key}-{worker}": operate(processes, account, tmp_path / f"{key}-{worker}", key)
        for key in keys
        for worker in range(2)
    }
    ended = {folder: processes.wait(child)[0] for folder, child in running.items()}
    for key in keys:
        assert sorted(ended[tmp_path / f"{key}-{worker}"] for worker in range(2)) == [0, 1]
    published = [folder / "published" for folder in running if (folder / "published").exists()]
    assert sorted(file.read_text() for file in published) == sorted(outputs_with_their_commit())
    assert len(published) == len(keys)
    last = selectors.last_entry(account)
    assert (last.rho_spent_nano, last.open_reservations) == (len(keys) * COST_NANO, 0)
    assert_sound(account)


def test_workers_at_the_same_time_with_room_for_one_publish_once(processes, tmp_path):
    account = open_account(epsilon_limit=0.065)
    assert COST_NANO <= (account.rho_limit_nano or 0) < 2 * COST_NANO
    running = [operate(processes, account, tmp_path / str(worker), uuid4()) for worker in range(4)]
    assert sorted(processes.wait(child)[0] for child in running) == [0, 1, 1, 1]
    assert len(list(tmp_path.glob("*/published"))) == len(outputs_with_their_commit()) == 1
    assert len(list(tmp_path.glob("*/read"))) == 1
    assert selectors.last_entry(account).rho_spent_nano == COST_NANO
    assert_sound(account)


def cut_connection() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SET ROLE none")
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
