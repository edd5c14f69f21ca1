import io
import math
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from privacy import errors
from privacy.ledger import counter, counter_file, selectors
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.counter_file import CounterFile
from privacy.ledger.counter_objects import counter_objects
from privacy.ledger.marks import AccountIdentity, Mark
from privacy.ledger.models import LedgerCounter
from tests.counting import IDENTITY, know_the_counter
from tests.owning import as_owner, without_rules

POOL = AccountIdentity("project:x:pool", datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def path(tmp_path) -> Path:
    where = tmp_path / "deep" / "counter.json"
    CounterFile(where).begin(IDENTITY.hex, {})
    return where


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


def test_an_unknown_account_begins_and_never_goes_on(path):
    """Who has entries and no mark has lost the counter, or was never counted."""
    file = CounterFile(path)
    file.check(POOL, sequence=1, previous_hash="0" * 64)
    with pytest.raises(errors.CounterMissing, match="does not know this account"):
        file.check(POOL, sequence=2, previous_hash="0" * 64)


def test_without_a_counter_nothing_begins_and_nothing_is_recorded(path):
    file = CounterFile(path)
    path.unlink()
    for refused in (
        lambda: file.check(POOL, sequence=1, previous_hash="0" * 64),
        lambda: file.advance(POOL, Mark(1, "a" * 64)),
        lambda: CounterFile(path).advance(POOL, Mark(1, "a" * 64)),
        lambda: CounterFile(path.parent / "gone" / "counter.json").advance(POOL, Mark(1, "a" * 64)),
    ):
        with pytest.raises(errors.CounterMissing, match="is missing"):
            refused()
    assert not path.exists()


def test_a_file_of_an_earlier_version_admits_nothing_until_it_is_named(path):
    CounterFile(path).advance(POOL, Mark(3, "c" * 64))
    path.write_bytes(path.read_bytes().partition(b"\n")[2])
    file = CounterFile(path)
    with pytest.raises(errors.CounterMissing):
        file.check(POOL, sequence=4, previous_hash="c" * 64)
    file.begin("f" * 32, {})
    file.check(POOL, sequence=4, previous_hash="c" * 64)
    assert file.marks() == CounterFile(path).marks() == {POOL: Mark(3, "c" * 64)}
    assert CounterFile(path).identity == "f" * 32


def test_what_is_closed_stays_closed(path):
    file, other = CounterFile(path), CounterFile(path)
    file.advance(POOL, Mark(3, "c" * 64))
    file.close({POOL: Mark(3, "c" * 64)})
    other.advance(POOL, Mark(9, "d" * 64))
    for each in (file, other, CounterFile(path)):
        assert each.marks() == {POOL: Mark(3, "c" * 64, closed=True)}
        with pytest.raises(errors.RollbackDetected, match="closed"):
            each.check(POOL, sequence=10, previous_hash="d" * 64)


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
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(errors.RollbackDetected, match="damaged"):
        CounterFile(path).check(POOL, sequence=4, previous_hash="c" * 64)


def test_the_file_stays_small(path, monkeypatch):
    monkeypatch.setattr(counter_file, "COMPACT_ABOVE_BYTES", 1000)
    file, reader = CounterFile(path), CounterFile(path)
    for sequence in range(1, 60):
        file.advance(POOL, Mark(sequence, "c" * 64))
        assert reader.marks() == {POOL: Mark(sequence, "c" * 64)}
    assert path.stat().st_size < 2000


def test_a_file_that_is_replaced_between_a_look_and_its_opening_is_read_from_its_start(path, monkeypatch):
    reader, writer = CounterFile(path), CounterFile(path)
    for sequence in range(1, 4):
        writer.advance(POOL, Mark(sequence, "c" * 64))
    assert reader.marks() == {POOL: Mark(3, "c" * 64)}
    writer.advance(POOL, Mark(4, "c" * 64))
    look = type(path).stat
    late = []

    def replaced_after(looked, **options):
        state = look(looked, **options)
        if not late and looked == path:
            late.append(looked)
            monkeypatch.setattr(counter_file, "COMPACT_ABOVE_BYTES", -(10**6))
            others = {AccountIdentity(f"pool:{n}", POOL.opened_at): Mark(n, "c" * 64) for n in range(20, 40)}
            writer.close(others)
        return state

    monkeypatch.setattr(type(path), "stat", replaced_after)
    assert reader.marks()[POOL] == Mark(4, "c" * 64)
    assert len(reader.marks()) == 21


def test_a_file_that_was_replaced_twice_is_not_taken_for_the_first(path, monkeypatch):
    """A file system gives the number of a file that is gone to the next one: of two replacements the second has it."""
    monkeypatch.setattr(counter_file, "COMPACT_ABOVE_BYTES", -(10**6))
    reader, writer = CounterFile(path), CounterFile(path)
    for sequence in range(1, 20):
        writer.advance(POOL, Mark(sequence, "c" * 64))
        if sequence % 2:
            assert reader.marks() == {POOL: Mark(sequence, "c" * 64)}


ADVANCE_MANY = """
import sys, threading
from datetime import datetime
from pathlib import Path

from privacy.ledger import counter_file
counter_file.COMPACT_ABOVE_BYTES = 2000
file = counter_file.CounterFile(Path(sys.argv[1]))
account = counter_file.AccountIdentity(sys.argv[2], datetime.fromisoformat(sys.argv[3]))
marks = [counter_file.Mark(sequence, "c" * 64) for sequence in range(1, 101)]
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
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
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
    with without_rules("privacy_ledgerentry", "privacy_budgetaccount") as cursor:
        cursor.execute(
            "DELETE FROM privacy_ledgerentry WHERE account_id = %s AND sequence > %s", [account.pk, sequence]
        )
        if not sequence:
            cursor.execute("DELETE FROM privacy_budgetaccount WHERE id = %s", [account.pk])


def in_a_new_process() -> None:
    counter.site_counter().checked_at = -math.inf


@pytest.mark.django_db(transaction=True)
def test_a_restored_backup_is_refused(open_account, priced):
    """By the account itself, at once, in whatever process."""
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

    monkeypatch.setattr(counter_file.os, "fdatasync", full)
    monkeypatch.setattr(counter_file.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        reserve(account, priced(0.25))
    assert selectors.guarantee(account).epsilon_spent == 0.5
    ledger.void(reservation=held, reason="no row was read")
    assert selectors.guarantee(account).epsilon_spent == 0.25


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("sequence", [1, 0], ids=["shorter", "gone"])
def test_a_ledger_that_forgot_anything_admits_nothing_anywhere(open_account, priced, sequence):
    """Not on the account that is short, not on one that is whole, not on a new one for the same people."""
    whole, short = open_account(), open_account()
    reserve(whole, priced(0.25))
    reserve(short, priced(0.5))
    restore_backup(short, sequence)
    in_a_new_process()
    attempts = [
        lambda: reserve(whole, priced(0.25)),
        lambda: open_account(),
        lambda: ledger.change_account_limits(
            account=whole, epsilon_limit=9.0, delta_limit=1e-6, actor="ada", reason="more"
        ),
    ]
    if sequence:
        attempts.append(lambda: reserve(short, priced(0.5)))
    for attempt in attempts:
        with pytest.raises(errors.RollbackDetected, match="old copy"):
            attempt()
    assert selectors.guarantee(whole).sequence == 2


@pytest.mark.django_db(transaction=True)
def test_what_was_forgotten_is_closed_and_the_rest_goes_on(open_account, priced):
    whole, short, gone = open_account(), open_account(), open_account()
    for account in (whole, short, gone):
        reserve(account, priced(0.25))
    restore_backup(short, 1)
    restore_backup(gone, 0)
    in_a_new_process()
    assert {account.scope for account in counter.close_forgotten()} == {short.scope, gone.scope}
    assert reserve(whole, priced(0.25)).sequence == 3
    with pytest.raises(errors.RollbackDetected, match="closed"):
        reserve(short, priced(0.25))
    told = counter.counter_state()
    assert (told.problem, told.closed) == ("", 2)
    assert [verdict.differing for verdict in audit_accounts(scope=None, marks=counter.site_counter().marks())] == [0, 0]
    assert counter.close_forgotten() == {}


@pytest.mark.django_db(transaction=True)
def test_a_lost_counter_admits_nothing_and_the_audit_says_so(open_account, priced, counter_path):
    account = open_account()
    reserve(account, priced(0.25))
    counter_path.unlink()
    with pytest.raises(errors.CounterMissing, match="is missing"):
        reserve(account, priced(0.25))
    with pytest.raises(errors.CounterMissing):
        open_account()
    said = io.StringIO()
    with pytest.raises(CommandError):
        call_command("audit_ledger", stdout=said)
    assert "mark in the counter outside the database: none" in said.getvalue()
    assert "The external counter is missing, so" in said.getvalue()
    # One that somebody lays in its place is another one.
    CounterFile(counter_path).begin("e" * 32, {})
    in_a_new_process()
    with pytest.raises(errors.CounterMissing, match="belongs to another"):
        open_account()


@pytest.mark.django_db(transaction=True)
def test_a_lost_counter_is_begun_anew_with_a_reason_that_stays(open_account, priced, counter_path):
    account = open_account()
    reserve(account, priced(0.25))
    counter_path.unlink()
    with as_owner():
        with pytest.raises(errors.CounterMissing):
            counter.begin_counter()
        begun = counter.begin_counter(reason="the disk of the counter burnt")
    try:
        assert reserve(account, priced(0.25)).sequence == 3
        assert "begun anew" in counter.counter_state().sentence
        assert "the disk of the counter burnt" in counter.counter_state().sentence
        with pytest.raises(DatabaseError, match="permission denied"):
            LedgerCounter.objects.filter(pk=begun.pk).update(reason="")
        with as_owner(), pytest.raises(DatabaseError, match="the ledger only grows"):
            LedgerCounter.objects.filter(pk=begun.pk).delete()
    finally:
        forget_counters_after(IDENTITY)


@pytest.mark.django_db(transaction=True)
def test_a_counter_that_knows_more_is_never_begun_anew(open_account, priced, counter_path):
    account = open_account()
    reserve(account, priced(0.25))
    restore_backup(account, 1)
    for named in (True, False):
        if not named:
            counter_path.write_bytes(counter_path.read_bytes().partition(b"\n")[2])
        in_a_new_process()
        with as_owner():
            if named:
                assert counter.begin_counter(reason="we would rather spend again").identity == IDENTITY
            else:
                with pytest.raises(errors.RollbackDetected, match="it stays as it is"):
                    counter.begin_counter(reason="we would rather spend again")
        with pytest.raises(errors.RollbackDetected):
            reserve(account, priced(0.25))


@pytest.mark.django_db(transaction=True)
def test_no_process_that_spends_may_choose_its_counter(counter_path):
    with pytest.raises(DatabaseError, match="permission denied"):
        LedgerCounter.objects.create(identity=uuid4())


@pytest.mark.django_db(transaction=True)
def test_the_counter_of_an_earlier_version_is_taken_over(open_account, priced, counter_path):
    """It has no name yet, and neither has the database; its marks count all the same."""
    account = open_account()
    reserve(account, priced(0.25))
    counter_path.write_bytes(counter_path.read_bytes().partition(b"\n")[2])
    forget_counters_after(None)
    try:
        with as_owner():
            begun = counter.begin_counter()
        assert CounterFile(counter_path).identity == begun.identity.hex
        in_a_new_process()
        assert reserve(account, priced(0.25)).sequence == 3
        # Without the file, the same ledger is nobody's.
        forget_counters_after(None)
        counter_path.unlink()
        with as_owner(), pytest.raises(errors.CounterMissing):
            counter.begin_counter()
    finally:
        forget_counters_after(IDENTITY)


def forget_counters_after(identity) -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE privacy_ledgercounter DISABLE TRIGGER USER")
        cursor.execute("DELETE FROM privacy_ledgercounter")
        cursor.execute("ALTER TABLE privacy_ledgercounter ENABLE ALWAYS TRIGGER privacy_counter_forever")
    if identity:
        with as_owner():
            know_the_counter()


@pytest.mark.django_db(transaction=True)
def test_an_account_that_was_never_committed_is_not_missed(open_account):
    with transaction.atomic():
        open_account()
        transaction.set_rollback(True)
    assert [mark.sequence for mark in counter.site_counter().marks().values()] == [0]
    in_a_new_process()
    open_account()
    assert counter.counter_state().problem == ""


@pytest.mark.django_db(transaction=True)
def test_a_crash_before_the_first_mark_is_no_lost_counter(open_account, priced, counter_path):
    """The grant is committed and its advance was never written: the account goes on."""
    name = counter_path.read_bytes()
    account = open_account()
    first = [line for line in counter_path.read_bytes().splitlines(True) if b'"sequence": 0' in line]
    counter_path.write_bytes(name + b"".join(first))
    in_a_new_process()
    assert reserve(account, priced(0.25)).sequence == 2


class TestInABucket:
    @pytest.fixture
    def bucket(self, settings, tmp_path):
        settings.STORAGES = settings.STORAGES | {
            "ledger_counter": {
                "BACKEND": "django.core.files.storage.FileSystemStorage",
                "OPTIONS": {"location": tmp_path / "bucket"},
            }
        }
        settings.LEDGER_COUNTER_URL = "s3://elsewhere"
        counter_objects.cache_clear()
        counter_objects().begin(IDENTITY.hex, {})
        yield tmp_path / "bucket"
        counter_objects.cache_clear()

    @pytest.mark.django_db(transaction=True)
    def test_it_follows_and_keeps_the_newest(self, bucket, open_account, priced):
        account = open_account()
        for _ in range(3):
            ledger.void(reservation=reserve(account, priced(0.125)), reason="no row was read")
        now = selectors.guarantee(account)
        identity = AccountIdentity(account.scope, account.created_at)
        assert counter.site_counter().marks() == {identity: Mark(now.sequence, now.chain_head)}
        assert len(list(bucket.glob("*/*.json"))) == 1
        assert counter.counter_state().problem == ""

    @pytest.mark.django_db(transaction=True)
    def test_another_host_sees_what_this_one_wrote(self, bucket, open_account, priced):
        account = open_account()
        reserve(account, priced(0.25))
        reserve(account, priced(0.25))
        counter_objects.cache_clear()
        restore_backup(account, 2)
        with pytest.raises(errors.RollbackDetected, match="old copy"):
            reserve(account, priced(0.25))
        assert counter.close_forgotten().keys() == {AccountIdentity(account.scope, account.created_at)}
        with pytest.raises(errors.RollbackDetected, match="closed"):
            reserve(account, priced(0.25))

    @pytest.mark.django_db(transaction=True)
    def test_an_emptied_bucket_admits_nothing(self, bucket, open_account, priced):
        account = open_account()
        shutil.rmtree(bucket)
        counter_objects.cache_clear()
        for attempt in (lambda: reserve(account, priced(0.25)), open_account):
            with pytest.raises(errors.CounterMissing):
                attempt()
        assert not bucket.exists()

    @pytest.mark.django_db(transaction=True)
    def test_a_damaged_object_admits_nothing(self, bucket, open_account, priced):
        account = open_account()
        for file in bucket.glob("*/*.json"):
            file.write_text("{")
        with pytest.raises(errors.RollbackDetected, match="damaged"):
            reserve(account, priced(0.25))
