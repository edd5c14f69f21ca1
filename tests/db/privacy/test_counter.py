"""The counter outside the database: never ahead, survives torn writes, and sees a restored backup."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection

from privacy import errors, selectors
from privacy.services import counter, ledger
from privacy.services.counter import AccountIdentity, CounterFile, Mark

POOL = AccountIdentity("project:x:pool", datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "deep" / "counter.json"


def test_a_new_process_reads_what_another_wrote(path):
    CounterFile(path).advance(POOL, Mark(3, "c" * 64))
    assert CounterFile(path).marks() == {POOL: Mark(3, "c" * 64)}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_mark_never_goes_back(path):
    file, other = CounterFile(path), CounterFile(path)
    file.advance(POOL, Mark(3, "c" * 64))
    other.advance(POOL, Mark(2, "b" * 64))
    assert file.marks() == other.marks() == {POOL: Mark(3, "c" * 64)}


@pytest.mark.parametrize(
    ("sequence", "previous", "admitted"),
    [(4, "c", True), (5, "x", True), (4, "x", False), (3, "c", False), (2, "a", False)],
)
def test_only_what_follows_the_mark_is_admitted(path, sequence, previous, admitted):
    file = CounterFile(path)
    file.advance(POOL, Mark(3, "c" * 64))
    if admitted:
        file.check(POOL, sequence=sequence, previous_hash=previous * 64)
    else:
        with pytest.raises(errors.RollbackDetected, match="project:x:pool"):
            file.check(POOL, sequence=sequence, previous_hash=previous * 64)


def test_an_unknown_account_is_admitted(path):
    CounterFile(path).check(POOL, sequence=2, previous_hash="0" * 64)


def test_a_torn_last_line_is_left_out_and_mended(path):
    file = CounterFile(path)
    file.advance(POOL, Mark(3, "c" * 64))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    assert CounterFile(path).marks() == {POOL: Mark(3, "c" * 64)}
    CounterFile(path).advance(POOL, Mark(4, "d" * 64))
    assert CounterFile(path).marks() == file.marks() == {POOL: Mark(4, "d" * 64)}


def test_a_damaged_line_admits_nothing(path):
    CounterFile(path).advance(POOL, Mark(3, "c" * 64))
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(errors.RollbackDetected, match="damaged"):
        CounterFile(path).check(POOL, sequence=4, previous_hash="c" * 64)


def test_the_file_stays_small(path, monkeypatch):
    monkeypatch.setattr(counter, "COMPACT_ABOVE_BYTES", 1000)
    file, reader = CounterFile(path), CounterFile(path)
    for sequence in range(1, 60):
        file.advance(POOL, Mark(sequence, "c" * 64))
        assert reader.marks() == {POOL: Mark(sequence, "c" * 64)}
    assert path.stat().st_size < 2000


ADVANCE_MANY = """
import sys, threading
from datetime import datetime
from pathlib import Path
from privacy.services import counter

counter.COMPACT_ABOVE_BYTES = 2000
file = counter.CounterFile(Path(sys.argv[1]))
account = counter.AccountIdentity(sys.argv[2], datetime.fromisoformat(sys.argv[3]))
marks = [counter.Mark(sequence, "c" * 64) for sequence in range(1, 101)]
threads = [threading.Thread(target=lambda: [file.advance(account, mark) for mark in marks]) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_and_processes_share_one_file(path):
    opened = POOL.opened_at.isoformat()
    processes = [
        subprocess.Popen([sys.executable, "-c", ADVANCE_MANY, path, f"pool:{n}", opened], cwd=settings.BASE_DIR)
        for n in range(3)
    ]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    expected = {AccountIdentity(f"pool:{n}", POOL.opened_at): Mark(100, "c" * 64) for n in range(3)}
    assert CounterFile(path).marks() == expected


def reserve(account, event):
    return ledger.reserve(account=account, event=event, purpose="a test", key=uuid4())


@pytest.mark.django_db(transaction=True)
def test_the_counter_follows_every_committed_entry(open_account, priced):
    account = open_account()
    for _ in range(3):
        ledger.void(reservation=reserve(account, priced(0.125)), reason="no row was read")
    now = selectors.guarantee(account)
    assert counter.site_counter().marks() == {
        AccountIdentity(account.scope, account.created_at): Mark(now.sequence, now.chain_head)
    }


@pytest.mark.django_db(transaction=True)
def test_a_refused_reservation_does_not_advance_the_counter(open_account, priced):
    account = open_account()
    with pytest.raises(errors.BudgetExceeded):
        reserve(account, priced(1.5))
    assert [mark.sequence for mark in counter.site_counter().marks().values()] == [1]


def restore_backup(account, sequence: int) -> None:
    """Leave the database as a copy made after entry `sequence` would."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE privacy_ledgerentry DISABLE TRIGGER USER")
        cursor.execute(
            "DELETE FROM privacy_ledgerentry WHERE account_id = %s AND sequence > %s", [account.pk, sequence]
        )
        for name in ("admit", "limits", "forever"):
            cursor.execute(f"ALTER TABLE privacy_ledgerentry ENABLE ALWAYS TRIGGER privacy_entry_{name}")


@pytest.mark.django_db(transaction=True)
def test_a_restored_backup_is_refused(open_account, priced):
    account = open_account()
    held = reserve(account, priced(0.5))
    reserve(account, priced(0.25))
    restore_backup(account, 2)
    with pytest.raises(errors.RollbackDetected, match="old copy"):
        reserve(account, priced(0.5))
    with pytest.raises(errors.RollbackDetected):
        ledger.void(reservation=held, reason="no row was read")
    assert selectors.guarantee(account).sequence == 2


@pytest.mark.django_db(transaction=True)
def test_a_counter_that_lags_after_a_crash_catches_up(open_account, priced, counter_path):
    account = open_account()
    behind = counter_path.read_bytes()
    reserve(account, priced(0.25))
    reserve(account, priced(0.25))
    counter_path.write_bytes(behind)
    reserve(account, priced(0.25))
    assert [mark.sequence for mark in counter.site_counter().marks().values()] == [4]


@pytest.mark.django_db(transaction=True)
def test_a_counter_that_cannot_be_written_stops_reservations(open_account, priced, counter_path, monkeypatch):
    account = open_account()
    held = reserve(account, priced(0.25))

    def full(*_arguments) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(counter.os, "fdatasync", full)
    monkeypatch.setattr(counter.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        reserve(account, priced(0.25))
    assert selectors.guarantee(account).epsilon_spent == 0.5
    ledger.void(reservation=held, reason="no row was read")
    assert selectors.guarantee(account).epsilon_spent == 0.25
