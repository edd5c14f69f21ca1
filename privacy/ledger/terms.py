"""The terms of an account and its limits as integers, rounded down."""

import json
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction

from privacy.accounting.composition import Limits, rho_limit
from privacy.accounting.cost import MOST_EPSILON_LIMIT, NANO, Amount, delta_limit_to_atto, epsilon_limit_to_nano
from privacy.ledger.models import BudgetAccount, Filter

DEFAULT_DELTA_SHARE = Fraction(1, 2)


def limits(*, filter: str, epsilon_limit: Amount, delta_limit: Amount, delta_share: Amount | None) -> Limits:  # noqa: A002  # the field's word
    """Turn the limit a person typed into integers: 0.3 means three tenths, not the float next to it."""
    epsilon = epsilon_limit_to_nano(_typed(epsilon_limit))
    delta = delta_limit_to_atto(_typed(delta_limit))
    if epsilon > MOST_EPSILON_LIMIT * NANO:
        raise ValueError(f"epsilon limit must be <= {MOST_EPSILON_LIMIT:g}, got {epsilon_limit}")
    if delta >= 10**18:
        raise ValueError(f"delta limit must be < 1, got {delta_limit}")
    if filter == Filter.PURE:
        return Limits(epsilon, delta, delta, None)
    share = DEFAULT_DELTA_SHARE if delta_share is None else Fraction(_typed(delta_share))
    if not 0 <= share < 1:
        raise ValueError(f"delta share must lie in [0, 1), got {delta_share}")
    if delta == 0:
        raise ValueError("a zcdp account needs a delta limit > 0 to turn rho into epsilon")
    delta_sum = int(delta * share)
    return Limits(epsilon, delta, delta_sum, rho_limit(epsilon_nano=epsilon, delta_atto=delta - delta_sum))


def delta_share(account: BudgetAccount) -> Fraction | None:
    """Return the part of its delta a `zcdp` account lets operations spend."""
    return Fraction(account.delta_sum_limit_atto, account.delta_limit_atto) if account.filter == Filter.ZCDP else None


def to_json(account: BudgetAccount, limits: Limits, *, approved_by: str = "") -> str:
    """Return the event of a grant or a limit change, with fixed terms and approver, which the chain thus covers."""
    fixed = {
        "kind": "limits",
        "scope": account.scope,
        "unit": account.unit,
        "adjacency": account.adjacency,
        "filter": account.filter,
    }
    approval = {"approved_by": approved_by} if approved_by else {}
    return json.dumps(fixed | asdict(limits) | approval)


def _typed(value: Amount) -> Amount:
    return Decimal(repr(value)) if isinstance(value, float) else value
