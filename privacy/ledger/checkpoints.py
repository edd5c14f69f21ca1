"""The chain of an account as a log that others witness: its checkpoint, signed by the site, and proofs about it."""

# The leaves are the hashes of the entries, which cover all of their text. A ledger that has lost entries which the
# counter outside the database has seen is not signed: a log signs nothing that contradicts what it signed before.

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from django.conf import settings

from privacy.errors import NoSuchEntry, RollbackDetected
from privacy.ledger.auditor.merkle import consistency_proof, inclusion_proof, leaf_hash, root_of
from privacy.ledger.auditor.notes import Checkpoint, origin_of, sign_checkpoint
from privacy.ledger.counter import site_counter
from privacy.ledger.keys import SiteKey, key_id
from privacy.ledger.marks import AccountIdentity, missing
from privacy.ledger.models import BudgetAccount, LedgerEntry
from privacy.wording import in_english


@dataclass(frozen=True, slots=True)
class Log:
    origin: str
    hashes: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.hashes)

    def checkpoint(self, size: int | None = None) -> str:
        leaves = self._leaves(self.size if size is None else self._within(size))
        return sign_checkpoint(Checkpoint(self.origin, len(leaves), root_of(leaves)), site_key())

    def consistency(self, old: int, size: int) -> list[bytes]:
        return consistency_proof(self._leaves(self._within(size)), self._within(old, size))

    def inclusion(self, sequence: int, size: int) -> list[bytes]:
        if sequence < 1:
            raise NoSuchEntry(in_english("entries are numbered from 1, not from {sequence}", sequence=sequence))
        return inclusion_proof(self._leaves(self._within(size)), self._within(sequence, size) - 1)

    def _leaves(self, size: int) -> Sequence[bytes]:
        return [leaf_hash(bytes.fromhex(each)) for each in self.hashes[:size]]

    def _within(self, number: int, size: int | None = None) -> int:
        most = self.size if size is None else size
        if not 0 <= number <= most:
            raise NoSuchEntry(in_english("the log ends at entry {most} and has no {number}", most=most, number=number))
        return number


def log_of(account: BudgetAccount) -> Log:
    """Return an account's log; `RollbackDetected` if it has lost what the counter has seen."""
    counter = site_counter()
    # The counter first: the ledger may grow meanwhile.
    identity, marks = counter.identity, counter.marks()
    if not identity:
        raise missing()
    entries = LedgerEntry.objects.filter(account=account).order_by("sequence")
    hashes = tuple(entries.values_list("hash", flat=True))
    mark = marks.get(AccountIdentity(account.scope, account.created_at))
    if mark is not None and mark.sequence:
        held = hashes[mark.sequence - 1] if mark.sequence <= len(hashes) else ""
        if mark.closed or held != mark.head:
            raise RollbackDetected(f"{account.scope}: entries were lost, so its checkpoint is not signed")
    return Log(origin_of(site_name(), account.scope), hashes)


def checkpoint_at(account: BudgetAccount, size: int) -> str:
    """Return the signed checkpoint of an account at a size; empty where entries were lost, which an audit tells."""
    try:
        log = log_of(account)
        return log.checkpoint(size)
    except (NoSuchEntry, RollbackDetected):
        return ""


def site_name() -> str:
    return settings.LEDGER_ORIGIN or f"dpal-{key_id(site_key().public_key)}"


def site_key() -> SiteKey:
    return _key_from(settings.SIGNING_KEY)


@cache
def _key_from(secret: str) -> SiteKey:
    return SiteKey.from_secret(secret)
