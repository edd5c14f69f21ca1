"""What a numerical accountant says of the spending so far, beside what the ledger guarantees; for information only.

The ledger's filter holds whoever chose the parameters on the way. Composition by privacy loss distributions is tighter
and is proven for parameters fixed beforehand, so nothing is admitted by it.
"""

import math

from django.core.cache import cache
from django.db.models import Exists, OuterRef, QuerySet

from privacy.accounting.composition import pld_epsilon
from privacy.accounting.events import event_from_json
from privacy.accounting.units import atto_spendable
from privacy.charges import adjacency_of
from privacy.models import BudgetAccount, EntryKind, LedgerEntry
from privacy.selectors import Guarantee

# 200 Gaussian events of 200 sizes take about three seconds.
MOST_EVENTS = 200
KEPT_SECONDS = 30 * 24 * 3600


def has_numerical_epsilon(account: BudgetAccount) -> bool:
    """Say whether there is a delta to ask for, something spent, and not too much of it to compose while one waits."""
    return account.delta_limit_atto > 0 and 0 < _standing(account)[: MOST_EVENTS + 1].count() <= MOST_EVENTS


def known_numerical_epsilon(now: Guarantee) -> float | None:
    """Return the epsilon computed before for the account as it stands, if it was."""
    known: float | None = cache.get(_cache_key(now))
    return known


def numerical_epsilon(account: BudgetAccount, now: Guarantee) -> float | None:
    """Return the epsilon of all that is spent at the account's delta, or None where there is none to give.

    Reservations count unless they were voided, as they do in the ledger.
    """
    if not has_numerical_epsilon(account):
        return None
    epsilon = known_numerical_epsilon(now)
    if epsilon is None:
        events = [event_from_json(entry.event) for entry in _standing(account)]
        delta = atto_spendable(account.delta_limit_atto)
        epsilon = pld_epsilon(events, delta, adjacency=adjacency_of(account))
        cache.set(_cache_key(now), epsilon, KEPT_SECONDS)
    return epsilon if math.isfinite(epsilon) else None


def _standing(account: BudgetAccount) -> QuerySet[LedgerEntry]:
    voided = LedgerEntry.objects.filter(parent=OuterRef("pk"), kind=EntryKind.VOID)
    return LedgerEntry.objects.filter(~Exists(voided), account=account, kind=EntryKind.RESERVE)


def _cache_key(now: Guarantee) -> str:
    # Every change of an account, of its limits too, is an entry with a hash of its own.
    return f"privacy-numerical-epsilon:{now.chain_head}"
