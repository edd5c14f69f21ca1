"""Charge a population for what one of its projects is charged: the same transaction, both or neither."""

# The database refuses a project's entry that its population does not repeat, whoever writes it. What is charged is what
# the operation costs one person of the population (`PeopleEvent`), so that its account sums what people lose.

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from uuid import UUID

from django.db import IntegrityError
from django.db.models import Exists, OuterRef

from privacy.accounting.events import Event, event_from_json
from privacy.errors import UnsoundCombination
from privacy.ledger.entries import Draft, append
from privacy.ledger.models import SETTLEMENTS, BudgetAccount, EntryKind, LedgerEntry
from privacy.ledger.selectors import quota_of, shared_charge

AMOUNTS = ("epsilon_nano", "delta_atto", "rho_nano", "mi_nano")


@dataclass(slots=True)
class SharedRefusal(Exception):
    """The population's account refused what the project's admitted; the cause is the database's."""

    draft: Draft


def shared_key(key: UUID, account: BudgetAccount) -> UUID:
    """Return the key under which a population's account repeats a reservation, as `privacy_shared_key` does."""
    return UUID(hashlib.sha256(f"{key}:{account.pk}".encode()).hexdigest()[:32])


def repeat_reservation(entry: LedgerEntry, event: Event) -> None:
    quota = _quota_of(entry)
    if quota is not None:
        _repeat(quota, entry, event)


def repeat_settlement(entry: LedgerEntry) -> None:
    quota = _quota_of(entry)
    if quota is not None:
        assert entry.parent is not None
        assert entry.parent.idempotency_key is not None
        common = quota.population
        held = LedgerEntry.objects.get(idempotency_key=shared_key(entry.parent.idempotency_key, common))
        _settle(held, common, entry)


def repeat_past(quota: BudgetAccount) -> int:
    """Charge the population for every reservation that stands on the account which joins it; returns how many."""
    settlement = LedgerEntry.objects.filter(parent=OuterRef("pk"), kind__in=SETTLEMENTS)
    voided = settlement.filter(kind=EntryKind.VOID)
    standing = LedgerEntry.objects.filter(~Exists(voided), account=quota, kind=EntryKind.RESERVE)
    count = 0
    for entry in standing.order_by("sequence"):
        held = _repeat(quota, entry, event_from_json(entry.event))
        for settled in LedgerEntry.objects.filter(parent=entry, kind__in=SETTLEMENTS):
            _settle(held, quota.population, settled)
        count += 1
    return count


def unrepeated(quota: BudgetAccount) -> Iterator[tuple[LedgerEntry, str]]:
    """Yield standing reservations of a quota's account that its population does not repeat, or not at their price."""
    voided = LedgerEntry.objects.filter(parent=OuterRef("pk"), kind=EntryKind.VOID)
    standing = LedgerEntry.objects.filter(~Exists(voided), account=quota, kind=EntryKind.RESERVE)
    common = quota.population
    twins = {
        each.idempotency_key: each
        for each in LedgerEntry.objects.filter(
            ~Exists(voided), account=common, kind=EntryKind.RESERVE, subject=repeated_account(quota)
        )
    }
    for entry in standing.select_related("account").order_by("sequence").iterator():
        assert entry.idempotency_key is not None
        twin = twins.pop(shared_key(entry.idempotency_key, common), None)
        if twin is None:
            yield entry, "missing"
            continue
        try:
            wanted = shared_charge(quota, event_from_json(entry.event), entry=entry.sequence)
        except UnsoundCombination as error:
            yield entry, str(error)
            continue
        if any(getattr(twin, name) != getattr(wanted, name) for name in (*AMOUNTS, "event_json")):
            yield entry, "another price"
    for twin in twins.values():
        yield twin, "repeats nothing that stands"


def repeated_account(account: BudgetAccount) -> str:
    return account.scope[:100]


def _quota_of(entry: LedgerEntry) -> BudgetAccount | None:
    return None if entry.population_id is None else quota_of(entry.account)


def _repeat(quota: BudgetAccount, entry: LedgerEntry, event: Event) -> LedgerEntry:
    common = quota.population
    assert entry.idempotency_key is not None
    wanted = Draft(
        account=common,
        kind=EntryKind.RESERVE,
        idempotency_key=shared_key(entry.idempotency_key, common),
        purpose=entry.purpose,
        subject=repeated_account(quota),
        actor=entry.actor,
        **asdict(shared_charge(quota, event, entry=entry.sequence)),
    )
    return _append(wanted)


def _settle(held: LedgerEntry, common: BudgetAccount, settlement: LedgerEntry) -> LedgerEntry:
    return _append(
        Draft(
            account=common,
            kind=EntryKind(settlement.kind),
            parent=held,
            **{name: getattr(held, name) for name in AMOUNTS},
            output_digest=settlement.output_digest,
            reason=settlement.reason,
            actor=settlement.actor,
        )
    )


def _append(draft: Draft) -> LedgerEntry:
    try:
        return append(draft)
    except IntegrityError as error:
        raise SharedRefusal(draft) from error
