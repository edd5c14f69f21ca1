"""Marks of accounts kept outside the database, and the histories they refuse; `counter` says where."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from privacy.errors import CounterMissing, RollbackDetected


@dataclass(frozen=True, slots=True)
class AccountIdentity:
    """An account as it survives any kind of restore: ids and clusters change, these two do not."""

    scope: str
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class Mark:
    """Length of an account's chain; a closed one has lost entries and never spends again."""

    sequence: int
    head: str
    closed: bool = False


class Counter(Protocol):
    """The site's one counter, wherever it lies; `identity` is empty where there is none."""

    # How often a process holds the whole ledger against it.
    check_every_seconds: float
    # When this process last did, by its monotonic clock.
    checked_at: float

    @property
    def identity(self) -> str:
        """Name under which the database knows it."""

    def marks(self) -> dict[AccountIdentity, Mark]:
        """Return the newest mark of every account."""

    def check(self, account: AccountIdentity, *, sequence: int, previous_hash: str) -> None:
        """Refuse a new entry that does not follow what was seen before."""

    def advance(self, account: AccountIdentity, mark: Mark) -> None:
        """Record that a chain has grown to `mark`."""

    def begin(self, identity: str, marks: dict[AccountIdentity, Mark]) -> None:
        """Take a name, and the marks to begin with; what was there stays."""

    def close(self, accounts: dict[AccountIdentity, Mark]) -> None:
        """Close accounts for ever."""


def missing() -> CounterMissing:
    return CounterMissing("The external counter is missing, so nothing is charged (manage.py ledger_counter)")


def refuse_unless_next(
    account: AccountIdentity, mark: Mark | None, *, identity: str, sequence: int, previous_hash: str
) -> None:
    """Refuse a new entry that was written before, follows another chain, or has a predecessor nobody counted."""
    if not identity:
        raise missing()
    if mark is None:
        if sequence == 1:
            return
        raise CounterMissing(f"{account.scope}: the external counter does not know this account, so nothing is charged")
    if mark.closed:
        raise RollbackDetected(f"{account.scope}: closed, because an old copy of the database was restored")
    if mark.sequence < sequence - 1:
        return
    if mark.sequence >= sequence or mark.head != previous_hash:
        raise RollbackDetected(
            f"{account.scope}: the external counter is at entry {mark.sequence}, the ledger would write "
            f"{sequence}; an old copy of the database was restored"
        )


def is_newer(known: Mark | None, mark: Mark) -> bool:
    if known is None or known.closed:
        return known is None
    return mark.closed or mark.sequence > known.sequence


def keep_newest(marks: dict[AccountIdentity, Mark], account: AccountIdentity, mark: Mark) -> None:
    if is_newer(marks.get(account), mark):
        marks[account] = mark


def row_of(account: AccountIdentity, mark: Mark) -> dict[str, object]:
    row = {
        "scope": account.scope,
        "opened_at": account.opened_at.isoformat(),
        "sequence": mark.sequence,
        "head": mark.head,
    }
    return row | ({"closed": True} if mark.closed else {})


def mark_from(row: dict[str, object]) -> tuple[AccountIdentity, Mark]:
    """Read what `row_of` wrote; ValueError, KeyError or TypeError where it did not."""
    account = AccountIdentity(str(row["scope"]), datetime.fromisoformat(str(row["opened_at"])))
    return account, Mark(int(str(row["sequence"])), str(row["head"]), row.get("closed") is True)
