"""The ledger beside its counter: which counter is this database's, and does the ledger hold all that it has seen?"""

# An old copy of the database is found by the accounts that have lost entries, or that are gone; then nothing at all is
# admitted until somebody has closed those. A counter is begun with the first account of a site, by whoever owns the
# tables; later only with a reason that stays in the database.

import math
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from django.conf import settings
from django.db.models import OuterRef, Subquery

from privacy.errors import CounterMissing, RollbackDetected
from privacy.ledger.counter_file import counter_file
from privacy.ledger.counter_objects import counter_objects
from privacy.ledger.marks import AccountIdentity, Counter, Mark, missing
from privacy.ledger.models import BudgetAccount, LedgerCounter, LedgerEntry


def site_counter() -> Counter:
    """Return the counter of this site: a file, or objects in a bucket that several hosts share."""
    return counter_objects() if settings.LEDGER_COUNTER_URL else counter_file(Path(settings.LEDGER_COUNTER_PATH))


def refuse_what_was_forgotten() -> None:
    """Refuse to spend, anywhere, unless the counter is this database's and the ledger holds what it has seen.

    Asked before whatever spends or opens; the whole ledger is compared once a minute and process, the account that
    spends at every entry (`counter`).
    """
    counter = site_counter()
    if not counter.identity:
        raise missing()
    if time.monotonic() - counter.checked_at < counter.check_every_seconds:
        return
    refuse_another_counter(counter)
    if forgotten := forgotten_accounts(counter):
        raise RollbackDetected(
            f"{next(iter(forgotten)).scope}: an old copy of the database was restored, so nothing is charged "
            f"(accounts: {len(forgotten)}, manage.py ledger_counter)"
        )
    counter.checked_at = time.monotonic()


def refuse_another_counter(counter: Counter) -> None:
    """Refuse a counter that this database does not know: a lost one was replaced, or another site's is mounted."""
    known = LedgerCounter.objects.last()
    if known is None or known.identity.hex != counter.identity:
        raise CounterMissing(
            "The external counter belongs to another database, so nothing is charged (manage.py ledger_counter)"
        )


def forgotten_accounts(counter: Counter) -> dict[AccountIdentity, Mark]:
    """Return what the counter has seen and the ledger does not hold, but for accounts that are closed."""
    # One that was never committed has a mark without an entry.
    seen = {account: mark for account, mark in counter.marks().items() if mark.sequence and not mark.closed}
    newest = _marks_of_the_ledger()
    return {
        account: mark
        for account, mark in sorted(seen.items(), key=lambda item: item[0].scope)
        if newest.get(account) != mark and not _holds(account, mark)
    }


def _holds(account: AccountIdentity, mark: Mark) -> bool:
    return LedgerEntry.objects.filter(
        account__scope=account.scope, account__created_at=account.opened_at, sequence=mark.sequence, hash=mark.head
    ).exists()


@dataclass(frozen=True, slots=True)
class CounterState:
    """State of the counter outside the database, for people; `problem` is empty where all is well."""

    identity: str
    accounts: int
    closed: int
    begun: str
    problem: str

    @property
    def sentence(self) -> str:
        if self.problem:
            return f"counter outside the database: {self.problem}"
        return (
            f"counter outside the database: sound, {self.accounts} accounts"
            + (f", {self.closed} closed after entries were lost" if self.closed else "")
            + (f"; {self.begun}" if self.begun else "")
        )


def counter_state() -> CounterState:
    counter, problem = site_counter(), ""
    counter.checked_at = -math.inf
    try:
        refuse_what_was_forgotten()
    except RollbackDetected as error:
        problem = str(error)
    marks = [mark for mark in counter.marks().values() if mark.sequence]
    renewed = LedgerCounter.objects.exclude(reason="")
    begun = "; ".join(
        f"begun anew at {row.begun_at:%Y-%m-%d %H:%M} UTC, what was spent before is as the database remembers it: "
        f"{row.reason}"
        for row in renewed.order_by("pk")
    )
    return CounterState(counter.identity, len(marks), sum(mark.closed for mark in marks), begun, problem)


def begin_counter(*, reason: str = "") -> LedgerCounter:
    """Give this database its counter, or see that it has one; to be called as the owner of the tables.

    A genuinely new site begins one, and one of an earlier version names the one it has. Where a ledger's counter is
    lost, a `reason` begins another: what was spent before is then as the database remembers it, which the row says for
    ever.
    """
    counter, known = site_counter(), LedgerCounter.objects.last()
    if known is not None and known.identity.hex == counter.identity:
        return known
    if counter.identity:
        refuse_another_counter(counter)
    if forgotten_accounts(counter):
        raise RollbackDetected("The external counter has entries that this ledger lacks; it stays as it is.")
    marks = _marks_of_the_ledger()
    uncounted = marks.keys() - counter.marks().keys()
    if not reason and (known is not None or uncounted) and LedgerEntry.objects.exists():
        raise missing()
    begun = LedgerCounter.objects.create(identity=uuid4(), reason=reason)
    counter.begin(begun.identity.hex, marks)
    return begun


def _marks_of_the_ledger() -> dict[AccountIdentity, Mark]:
    entries = LedgerEntry.objects.filter(account=OuterRef("pk")).order_by("-sequence")
    newest = BudgetAccount.objects.annotate(
        sequence=Subquery(entries.values("sequence")[:1]), head=Subquery(entries.values("hash")[:1])
    )
    rows = newest.filter(sequence__isnull=False).values_list("scope", "created_at", "sequence", "head")
    return {AccountIdentity(*row[:2]): Mark(*row[2:]) for row in rows}


def close_forgotten() -> dict[AccountIdentity, Mark]:
    """Close every account that has lost entries, so that the others may go on; this cannot be undone."""
    counter = site_counter()
    refuse_another_counter(counter)
    forgotten = forgotten_accounts(counter)
    counter.close(forgotten)
    return forgotten
