"""The ledger's counter as objects in a bucket, for sites of several hosts: one counter for all of them."""

# One folder an account, in it one object for each advance, whose name says how many entries and the hash of the last
# one; earlier ones are deleted. Objects are never written again, so no two hosts can undo each other, and a bucket that
# is not part of any backup is not restored with one.

import hashlib
import json
import math
import time
from functools import cache

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages

from privacy.errors import RollbackDetected
from privacy.ledger.marks import AccountIdentity, Mark, mark_from, missing, refuse_unless_next, row_of

STORAGE = "ledger_counter"
NAME, CLOSED = "counter.json", "closed.json"
# An identity once read is believed for so long.
REMEMBERED_SECONDS = 60.0


class CounterObjects:
    """The newest mark of every account, shared by all hosts."""

    check_every_seconds = 900.0

    def __init__(self, storage: Storage) -> None:
        self.checked_at = -math.inf
        self._storage = storage
        self._identity, self._read_at = "", -math.inf

    @property
    def identity(self) -> str:
        if not self._identity or time.monotonic() - self._read_at > REMEMBERED_SECONDS:
            self._identity = str(self._read(NAME)["counter"]) if self._storage.exists(NAME) else ""
            self._read_at = time.monotonic()
        return self._identity

    def marks(self) -> dict[AccountIdentity, Mark]:
        found = (self._newest(folder) for folder in self._listed("")[0])
        return dict(mark for mark in found if mark is not None)

    def check(self, account: AccountIdentity, *, sequence: int, previous_hash: str) -> None:
        """Refuse a new entry that does not follow what was seen before."""
        newest = self._newest(_folder(account))
        mark = newest[1] if newest else None
        refuse_unless_next(account, mark, identity=self.identity, sequence=sequence, previous_hash=previous_hash)

    def advance(self, account: AccountIdentity, mark: Mark) -> None:
        if not self.identity:
            raise missing()
        folder = _folder(account)
        self._write(f"{folder}/{mark.sequence:012d}-{mark.head}.json", row_of(account, mark))
        names = sorted(name for name in self._listed(folder)[1] if name != CLOSED)
        for name in names[:-1]:
            self._storage.delete(f"{folder}/{name}")

    def begin(self, identity: str, marks: dict[AccountIdentity, Mark]) -> None:
        self._identity, self._read_at = identity, time.monotonic()
        for account, mark in marks.items():
            self.advance(account, mark)
        self._write(NAME, {"counter": identity})

    def close(self, accounts: dict[AccountIdentity, Mark]) -> None:
        for account, mark in accounts.items():
            self._write(f"{_folder(account)}/{CLOSED}", row_of(account, Mark(mark.sequence, mark.head, closed=True)))

    def _newest(self, folder: str) -> tuple[AccountIdentity, Mark] | None:
        names = self._listed(folder)[1]
        if not names:
            return None
        name = CLOSED if CLOSED in names else max(names)
        try:
            return mark_from(self._read(f"{folder}/{name}"))
        except FileNotFoundError:
            # Another host has just written a newer one.
            return self._newest(folder)

    def _listed(self, folder: str) -> tuple[list[str], list[str]]:
        try:
            return self._storage.listdir(folder)
        except FileNotFoundError:
            return [], []

    def _read(self, name: str) -> dict[str, object]:
        with self._storage.open(name) as file:
            content = file.read()
        try:
            found = json.loads(content)
            if "counter" not in found:
                mark_from(found)
        except (ValueError, KeyError, TypeError) as error:
            raise RollbackDetected(f"{name} is damaged; nothing is admitted until it has been examined") from error
        else:
            return dict(found)

    def _write(self, name: str, row: dict[str, object]) -> None:
        if not self._storage.exists(name):
            self._storage.save(name, ContentFile(json.dumps(row).encode()))


@cache
def counter_objects() -> CounterObjects:
    """Return this process's view of the bucket that the settings name."""
    return CounterObjects(storages[STORAGE])


def _folder(account: AccountIdentity) -> str:
    identity = json.dumps([account.scope, account.opened_at.isoformat()])
    return hashlib.sha256(identity.encode()).hexdigest()[:32]
