"""What the privacy layer stores: accounts, their entries, the counter they belong to, and what several accounts share.

Every rule that must hold whoever writes is a constraint here or a trigger in `migrations/sql/`. The triggers fill
in what a writer must not choose (sequence, totals, hashes, time), so such fields carry database defaults.
"""

from privacy.models.ledger import (
    SETTLEMENTS,
    AccountAdjacency,
    AccountUnit,
    BudgetAccount,
    EntryKind,
    Filter,
    LedgerCounter,
    LedgerEntry,
)
from privacy.models.populations import Population, Quota

__all__ = [
    "SETTLEMENTS",
    "AccountAdjacency",
    "AccountUnit",
    "BudgetAccount",
    "EntryKind",
    "Filter",
    "LedgerCounter",
    "LedgerEntry",
    "Population",
    "Quota",
]
