"""Append one entry to an account's chain; the only place that inserts into the ledger."""

from dataclasses import dataclass
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, IntegrityError, connection, transaction

from privacy.ledger.counter import site_counter
from privacy.ledger.faults import fault_point
from privacy.ledger.marks import AccountIdentity, Mark
from privacy.ledger.models import BudgetAccount, EntryKind, LedgerEntry

COLUMNS = [field.attname for field in LedgerEntry._meta.concrete_fields]
WRITTEN = (
    "account_id",
    "kind",
    "parent_id",
    "mechanism",
    "subject",
    "purpose",
    "event_json",
    "epsilon_nano",
    "delta_atto",
    "rho_nano",
    "mi_nano",
    "idempotency_key",
    "output_digest",
    "actor",
    "reason",
)
# Written out, because building this statement through the ORM takes longer than the database takes to run it.
HEAD = f"INSERT INTO privacy_ledgerentry ({', '.join(WRITTEN)})"
VALUES = ", ".join(["%s"] * len(WRITTEN))
# Whether others must be charged, too, is asked in the same round trip.
TAIL = f"RETURNING {', '.join(COLUMNS)}, privacy_population_of(account_id)"
INSERT = f"{HEAD} VALUES ({VALUES}) {TAIL}"
FLUSH = """
SELECT pg_logical_emit_message(true, 'privacy', ''),
       CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'local', true) END
"""
# Says how the transaction commits in the same round trip as the row.
INSERT_FLUSHED_AFTER = f"{HEAD} SELECT {VALUES} FROM set_config('synchronous_commit', 'off', true) {TAIL}"  # noqa: S608  # names as above


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry as its writer gives it; the database adds number, totals, time and hashes."""

    account: BudgetAccount
    kind: EntryKind
    parent: LedgerEntry | None = None
    mechanism: str = ""
    subject: str = ""
    purpose: str = ""
    event_json: str = "{}"
    epsilon_nano: int | None = 0
    delta_atto: int = 0
    rho_nano: int | None = 0
    mi_nano: int | None = 0
    idempotency_key: UUID | None = None
    output_digest: str = ""
    actor: str = ""
    reason: str = ""

    @property
    def account_id(self) -> int:
        return self.account.pk

    @property
    def parent_id(self) -> int | None:
        return self.parent.pk if self.parent else None


def append(draft: Draft, *, flush_after: bool = False) -> LedgerEntry:
    """Insert an entry in the current transaction; an `IntegrityError` carries the rule the database refused it by.

    With `flush_after` the transaction gives the account's lock up before its commit is on disk and waits for the disk
    afterwards, so that writers of one account share one flush instead of queueing for one each. Until then others may
    see the entry, but whatever they commit upon it reaches the disk after it.
    """
    with connection.cursor() as cursor:
        statement = INSERT_FLUSHED_AFTER if flush_after else INSERT
        cursor.execute(statement, [getattr(draft, name) for name in WRITTEN])
        *values, population_id = cursor.fetchone()
    entry = LedgerEntry.from_db(DEFAULT_DB_ALIAS, COLUMNS, values)
    entry.account, entry.population_id = draft.account, population_id
    identity = AccountIdentity(draft.account.scope, draft.account.created_at)
    counter = site_counter()
    counter.check(identity, sequence=entry.sequence, previous_hash=entry.previous_hash)
    if draft.kind == EntryKind.GRANT:
        # Before anybody can commit it: an account that the counter does not know has lost its counter, not its crash.
        counter.advance(identity, Mark(0, entry.previous_hash))

    def advance() -> None:
        if flush_after:
            fault_point("before_flush")
            _flush()
        fault_point("before_counter")
        counter.advance(identity, Mark(entry.sequence, entry.hash))

    # A settlement must not look failed because the counter could not be written after it: it is committed, and the
    # next entry catches up. A reservation whose counter failed is not used; it will be charged.
    transaction.on_commit(advance, robust=entry.kind != EntryKind.RESERVE)
    return entry


def _flush() -> None:
    # The smallest transaction that writes to the log: its commit, unlike the one before, waits until all is on disk,
    # also where the server's settings spare everybody that wait.
    with connection.cursor() as cursor:
        cursor.execute(FLUSH)


def broken_rule(error: IntegrityError) -> str:
    """Return the name of the constraint the database refused an entry for, or an empty string."""
    return getattr(getattr(error.__cause__, "diag", None), "constraint_name", None) or ""
