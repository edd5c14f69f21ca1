"""A counter kept outside the database, so that restoring an old backup cannot give back what was spent."""

# One JSON line per account and advance: which account, how many entries, the hash of the last one. Lines are appended
# and synced after the database has committed, so after a crash the file may lag behind the ledger but is never ahead of
# it: a ledger shorter than the file says has lost entries. An account has a line before its first entry is committed,
# and the file begins with the name under which the database knows it (`witness`): one that is missing, or that somebody
# began anew, admits nothing.

import fcntl
import json
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from privacy.errors import RollbackDetected
from privacy.ledger.marks import (
    AccountIdentity,
    Mark,
    is_newer,
    keep_newest,
    mark_from,
    missing,
    refuse_unless_next,
    row_of,
)

COMPACT_ABOVE_BYTES = 256 * 1024
LOCK_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC


class CounterFile:
    """The newest mark of every account, shared by all threads and processes that use the same path."""

    check_every_seconds = 60.0

    def __init__(self, path: Path) -> None:
        self.checked_at = -math.inf
        self._identity = ""
        self._path = path
        self._lock_path = path.with_name(path.name + ".lock")
        self._marks: dict[AccountIdentity, Mark] = {}
        self._file: int | None = None  # open for reading
        self._close: Callable[[], object] = do_nothing
        self._seen = (0, 0)  # inode of that file, bytes read
        self._pending: dict[AccountIdentity, Mark] = {}
        # Two locks, so that a check made while the account is locked never waits for another thread's disk.
        self._memory_lock = threading.Lock()
        self._disk_lock = threading.Lock()

    @property
    def identity(self) -> str:
        """Name under which the database knows this file; empty where there is none, or one of an earlier version."""
        with self._memory_lock:
            self._read_on()
            return self._identity

    def marks(self) -> dict[AccountIdentity, Mark]:
        with self._memory_lock:
            self._read_on()
            return dict(self._marks)

    def check(self, account: AccountIdentity, *, sequence: int, previous_hash: str) -> None:
        """Refuse a new entry that the file shows to have been written before, or to follow another chain."""
        with self._memory_lock:
            self._read_on()
            identity, mark = self._identity, self._marks.get(account)
        refuse_unless_next(account, mark, identity=identity, sequence=sequence, previous_hash=previous_hash)

    def advance(self, account: AccountIdentity, mark: Mark) -> None:
        """Record that the chain has grown to `mark`; threads that wait for the disk are written together."""
        if not self.identity:
            raise missing()
        with self._memory_lock:
            keep_newest(self._pending, account, mark)
        with self._disk_lock:
            with self._memory_lock:
                self._read_on()
                covered = not is_newer(self._marks.get(account), mark)
            if covered:
                return
            with self._among_processes():
                self._write_pending()

    def begin(self, identity: str, marks: dict[AccountIdentity, Mark]) -> None:
        """Take a name, and the marks to begin with; those of a file of an earlier version stay."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._disk_lock, self._among_processes(), self._memory_lock:
            self._read_on()
            everything = dict(self._marks)
            for account, mark in marks.items():
                keep_newest(everything, account, mark)
            self._rewrite(identity, everything)

    def close(self, accounts: dict[AccountIdentity, Mark]) -> None:
        """Close accounts for ever: each stays at the mark that its ledger no longer reaches."""
        with self._disk_lock, self._among_processes(), self._memory_lock:
            self._read_on()
            everything = dict(self._marks)
            for account, mark in accounts.items():
                keep_newest(everything, account, replace(mark, closed=True))
            self._rewrite(self._identity, everything)

    def _write_pending(self) -> None:
        with self._memory_lock:
            self._read_on()
            if not self._identity:
                raise missing()
            identity = self._identity
            fresh = {key: new for key, new in self._pending.items() if is_newer(self._marks.get(key), new)}
            everything = self._marks | fresh
            seen = self._seen
            self._pending.clear()
        if not fresh:
            return
        size = self._size()
        # Rewriting also mends a file that a crash left in the middle of a line.
        if size == 0 or size != seen[1] or size > COMPACT_ABOVE_BYTES + 512 * len(everything):
            self._rewrite(identity, everything)
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
            self._begin_with(None)
            return
        if (state.st_ino, state.st_size) == self._seen:
            return
        if self._file is None or state.st_ino != self._seen[0]:
            # The file that is opened may be a later one than the one looked at.
            self._begin_with(os.open(self._path, os.O_RDONLY))
        assert self._file is not None
        size = os.fstat(self._file).st_size
        if size < self._seen[1]:
            self._begin_with(self._file)
        # Not by a place of the file's own, which a forked process would share.
        read = os.pread(self._file, size - self._seen[1], self._seen[1])
        whole, newline, _ = read.rpartition(b"\n")
        for line in whole.splitlines():
            self._take(line)
        self._seen = (self._seen[0], self._seen[1] + len(whole) + len(newline))

    def _begin_with(self, file: int | None) -> None:
        if file != self._file:
            self._close()
            self._close = do_nothing if file is None else weakref.finalize(self, os.close, file)
        self._file = file
        self._marks, self._identity = {}, ""
        self._seen = (os.fstat(file).st_ino, 0) if file is not None else (0, 0)

    def _take(self, line: bytes) -> None:
        try:
            row = json.loads(line)
            if "counter" in row:
                self._identity = str(row["counter"])
            else:
                keep_newest(self._marks, *mark_from(row))
        except (ValueError, KeyError, TypeError) as error:
            raise RollbackDetected(
                f"{self._path.name} is damaged; nothing is admitted until it has been examined"
            ) from error

    def _rewrite(self, identity: str, everything: dict[AccountIdentity, Mark]) -> None:
        draft = self._path.with_name(self._path.name + ".new")
        with draft.open("wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(json.dumps({"counter": identity}).encode() + b"\n" + _lines(everything))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def do_nothing() -> None:
    """Close no file."""


@cache
def counter_file(path: Path) -> CounterFile:
    return CounterFile(path)


def _lines(marks: dict[AccountIdentity, Mark]) -> bytes:
    return "".join(json.dumps(row_of(account, mark)) + "\n" for account, mark in marks.items()).encode()
