"""Rules of the ledger: what an event costs on an account, and which entry may follow which in a series."""

# `services` and `auditor` call these functions; `migrations/sql/rules.sql` holds the same rules, and tests compare
# them.
#
# 1. The price of an event is its cost rounded up, finite in what the account's filter sums.
# 2. What costs something protects the account's unit.
# 3. An event that opens a series, or stands alone, names no entry before it; `OPENED_ONCE` are opened once an account.
# 4. A continuation names a standing reservation, counts all that came before it, and is the only one of its parent.
# 5. Secret samples of a project whose people have several records have no delta, or epsilons that are nearly the same.

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from privacy.accounting.cost import (
    Adjacency,
    Amount,
    delta_to_atto,
    epsilon_to_nano,
    mutual_information_to_nano,
    rho_to_nano,
)
from privacy.accounting.events import Event, SecretSampleEvent
from privacy.errors import UnsoundCombination
from privacy.wording import as_message

# Series whose entries count those before: a second opening would begin to count again.
OPENED_ONCE = ("secret_block", "gate_window", "composed_gate_window")
# An amount above a million is no privacy; left empty, it cannot make the totals of another currency overflow.
LARGEST_AMOUNT = 1e6


class FixedTerms(Protocol):
    unit: str
    adjacency: str
    filter: str


@dataclass(frozen=True, slots=True)
class Charge:
    """An event and its cost as an entry stores them; empty where there is no finite cost of that kind."""

    mechanism: str
    event_json: str
    epsilon_nano: int | None
    delta_atto: int
    rho_nano: int | None
    mi_nano: int | None


def price(account: FixedTerms, event: Event) -> Charge:
    """Return the charge of `event` on `account`; `UnsoundCombination` names the rule that leaves it without one."""
    charge = charge_of(event, adjacency=adjacency_of(account))
    free = (charge.epsilon_nano, charge.delta_atto, charge.rho_nano) == (0, 0, 0)
    # Events that do not say otherwise are proven for one record; what costs nothing is independent of all of them.
    protected = getattr(event, "unit", "record")
    if protected != account.unit and not free:
        raise UnsoundCombination(
            f"{event.kind} protects one {protected}, the account one {account.unit}: an account has one unit of privacy"
        )
    if account.filter == "pure" and charge.epsilon_nano is None:
        raise UnsoundCombination(f"{event.kind} has no finite epsilon, and the pure filter sums epsilons")
    if account.filter == "zcdp" and charge.rho_nano is None:
        raise UnsoundCombination(f"{event.kind} has no finite rho, and the zcdp filter sums rhos")
    return charge


def check_step(event: Event, parent: Event | None, *, opened: bool = False, continued: bool = False) -> None:
    """Refuse an event that is no next step of its series.

    Parameters
    ----------
    event : Event
        Of the reservation that is asked for.
    parent : Event or None
        Of the standing reservation that it names.
    opened : bool
        Whether an entry of this kind has opened a series on the account before.
    continued : bool
        Whether another standing reservation continues `parent`.

    Raises
    ------
    ValueError
        With the rule that it breaks.
    """
    if not event.needs_parent:
        if parent is not None:
            raise ValueError(f"{event.kind} continues nothing and names no entry before it")
        if opened and event.kind in OPENED_ONCE:
            raise paid_before(event.kind)
        return
    event.check_parent(parent)
    if continued:
        raise paid_before(event.kind)


def paid_before(kind: str) -> UnsoundCombination:
    """Return the refusal of a fork, or of a second opening of a series."""
    return UnsoundCombination(f"{kind}: another release has paid for this step of the series")


def refuse_mixed_samples(samples: Sequence[SecretSampleEvent]) -> None:
    r"""Refuse samples of one project whose prices for a person of several records are not proven to add up.

    Raises
    ------
    UnsoundCombination
        If their inner epsilons differ and one with a delta is too small beside the others.

    Notes
    -----
    With inner epsilons :math:`\varepsilon_k` and rates :math:`q_k` the deltas add up where
    :math:`e^{-\varepsilon_k}\le c=1-\sum_jq_j(1-e^{-\varepsilon_j})` for each sample with a delta: "Blocks charged one
    by one" in `docs/privacy.md`.
    """
    costs = [(sample.rate, sample.inner.cost(adjacency="null")) for sample in samples]
    least = min((cost.epsilon for _, cost in costs if cost.delta), default=math.inf)
    kept = 1 + math.fsum(rate * math.expm1(-cost.epsilon) for rate, cost in costs)
    if any(cost.epsilon != least for _, cost in costs) and math.isfinite(least) and math.exp(-least) > kept:
        raise UnsoundCombination(
            as_message(
                "{kind}: with several records per person, a training with a delta needs at "
                "least the project's largest epsilon",
                kind=SecretSampleEvent.kind,
            )
        )


def adjacency_of(account: FixedTerms) -> Adjacency:
    """Return the neighbouring relation of an account; a constraint admits no other word."""
    return cast(Adjacency, account.adjacency)


def charge_of(event: Event, *, adjacency: Adjacency) -> Charge:
    """Return the event with its cost rounded up; the auditor computes the same from the stored event."""
    cost = event.cost(adjacency=adjacency)
    return Charge(
        mechanism=event.kind,
        event_json=json.dumps(event.to_json(), sort_keys=True, allow_nan=False),
        epsilon_nano=_finite(cost.epsilon, epsilon_to_nano),
        delta_atto=delta_to_atto(cost.delta),
        rho_nano=_finite(cost.rho, rho_to_nano),
        mi_nano=_finite(cost.mutual_information, mutual_information_to_nano),
    )


def _finite(amount: float, to_integer: Callable[[Amount], int]) -> int | None:
    return to_integer(amount) if math.isfinite(amount) and amount <= LARGEST_AMOUNT else None
