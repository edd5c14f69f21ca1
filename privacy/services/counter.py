"""A counter kept outside the database, so that restoring an old backup cannot give back what was spent.

One JSON line per account and advance: which account, how many entries, the hash of the last one. Lines are appended
and synced after the database has committed, so after a crash the file may lag behind the ledger but is never ahead
of it: a ledger shorter than the file says has lost entries.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from django.conf import settings

from privacy.errors import RollbackDetected
from privacy.wording import say

COMPACT_ABOVE_BYTES = 256 * 1024
LOCK_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class AccountIdentity:
    """An account as it survives any kind of restore: ids and clusters change, these two do not."""

    scope: str
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class Mark:
    """How far an account's chain had grown."""

    sequence: int
    head: str


class CounterFile:
    """The newest mark of every account, shared by all threads and processes that use the same path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock_path = path.with_name(path.name + ".lock")
        self._marks: dict[AccountIdentity, Mark] = {}
        self._seen = (0, 0)  # inode, bytes read
        self._pending: dict[AccountIdentity, Mark] = {}
        # Two locks, so that a check made while the account is locked never waits for another thread's disk.
        self._memory_lock = threading.Lock()
        self._disk_lock = threading.Lock()

    def marks(self) -> dict[AccountIdentity, Mark]:
        """Return the newest mark of every account in the file."""
        with self._memory_lock:
            self._read_on()
            return dict(self._marks)

    def check(self, account: AccountIdentity, *, sequence: int, previous_hash: str) -> None:
        """Refuse a new entry that the file shows to have been written before, or to follow another chain."""
        with self._memory_lock:
            self._read_on()
            mark = self._marks.get(account)
        if mark is None or mark.sequence < sequence - 1:
            return
        if mark.sequence >= sequence or mark.head != previous_hash:
            raise RollbackDetected(
                say(
                    "{scope}: the counter outside the database stands at entry {kept}, the ledger would write "
                    "entry {next}; an old copy of the database was restored",
                    scope=account.scope,
                    kept=mark.sequence,
                    next=sequence,
                )
            )

    def advance(self, account: AccountIdentity, mark: Mark) -> None:
        """Record that the chain has grown to `mark`; threads that wait for the disk are written together."""
        with self._memory_lock:
            _keep_newest(self._pending, account, mark)
        with self._disk_lock:
            with self._memory_lock:
                self._read_on()
                covered = not _is_newer(self._marks.get(account), mark)
            if covered:
                return
            with self._among_processes():
                self._write_pending()

    def _write_pending(self) -> None:
        with self._memory_lock:
            self._read_on()
            fresh = {key: new for key, new in self._pending.items() if _is_newer(self._marks.get(key), new)}
            everything = self._marks | fresh
            seen = self._seen
            self._pending.clear()
        if not fresh:
            return
        size = self._size()
        # Rewriting also mends a file that a crash left in the middle of a line.
        if size == 0 or size != seen[1] or size > COMPACT_ABOVE_BYTES + 512 * len(everything):
            self._rewrite(everything)
            return
        lines = _lines(fresh)
        with self._path.open("ab") as file:
            file.write(lines)
            file.flush()
            os.fdatasync(file.fileno())
        with self._memory_lock:
            # Our own lines need not be read again, unless another thread has done so meanwhile.
            if self._seen == seen:
                self._marks |= fresh
                self._seen = (seen[0], seen[1] + len(lines))

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    @contextmanager
    def _among_processes(self) -> Iterator[None]:
        # Processes queue on a file of its own, because compaction replaces the counter file.
        try:
            lock = os.open(self._lock_path, LOCK_FLAGS, 0o600)
        except FileNotFoundError:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self._lock_path, LOCK_FLAGS, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _read_on(self) -> None:
        """Take in what other processes appended; a torn last line, left by a crash, is not taken."""
        try:
            state = self._path.stat()
        except FileNotFoundError:
            self._marks, self._seen = {}, (0, 0)
            return
        if (state.st_ino, state.st_size) == self._seen:
            return
        inode, offset = self._seen
        if state.st_ino != inode or state.st_size < offset:
            self._marks, offset = {}, 0
        with self._path.open("rb") as file:
            file.seek(offset)
            whole, newline, _ = file.read().rpartition(b"\n")
        for line in whole.splitlines():
            _keep_newest(self._marks, *_parse(line, self._path))
        self._seen = (state.st_ino, offset + len(whole) + len(newline))

    def _rewrite(self, everything: dict[AccountIdentity, Mark]) -> None:
        draft = self._path.with_name(self._path.name + ".new")
        with draft.open("wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(_lines(everything))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@cache
def counter_file(path: Path) -> CounterFile:
    """Return this process's view of the file at `path`."""
    return CounterFile(path)


def site_counter() -> CounterFile:
    """Return the counter of this site."""
    return counter_file(Path(settings.LEDGER_COUNTER_PATH))


def _is_newer(known: Mark | None, mark: Mark) -> bool:
    return known is None or mark.sequence > known.sequence


def _keep_newest(marks: dict[AccountIdentity, Mark], account: AccountIdentity, mark: Mark) -> None:
    if _is_newer(marks.get(account), mark):
        marks[account] = mark


def _lines(marks: dict[AccountIdentity, Mark]) -> bytes:
    rows = (
        {
            "scope": account.scope,
            "opened_at": account.opened_at.isoformat(),
            "sequence": mark.sequence,
            "head": mark.head,
        }
        for account, mark in marks.items()
    )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _parse(line: bytes, path: Path) -> tuple[AccountIdentity, Mark]:
    try:
        row = json.loads(line)
        identity = AccountIdentity(row["scope"], datetime.fromisoformat(row["opened_at"]))
        return identity, Mark(int(row["sequence"]), str(row["head"]))
    except (ValueError, KeyError, TypeError) as error:
        raise RollbackDetected(
            say("{name} is damaged; nothing is admitted until it has been examined", name=path.name)
        ) from error
