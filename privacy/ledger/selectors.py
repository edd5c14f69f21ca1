"""Guarantee of an account, what was spent on what, and what is left."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from django.core.cache import cache
from django.db import connection
from django.db.models import Case, Count, Exists, F, OuterRef, QuerySet, Subquery, Sum, When
from django.db.models.functions import Coalesce

from privacy.accounting.answers import RandomizedAnswersEvent
from privacy.accounting.composition import pld_epsilon, zcdp_epsilon
from privacy.accounting.cost import Cost, Unit, atto_shown, atto_spendable, nano_shown, nano_spendable, nano_spent
from privacy.accounting.events import Event, PeopleEvent, SecretSampleEvent, event_from_json
from privacy.errors import Spending, UnsoundCombination
from privacy.ledger.auditor.account import TOTAL_FIELDS
from privacy.ledger.auditor.chain import NO_HASH
from privacy.ledger.models import SETTLEMENTS, BudgetAccount, EntryKind, Filter, LedgerEntry
from privacy.ledger.rules import Charge, adjacency_of, price, refuse_mixed_samples
from privacy.wording import Message, as_message

# What stands before an account's first entry.
EMPTY = LedgerEntry(sequence=0, hash=NO_HASH, **dict.fromkeys(TOTAL_FIELDS, 0))
TOP_SPENDERS = 5


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The limit an account promises to keep, with what stands against it; reservations count as spent.

    Under the `zcdp` filter the epsilons are those that rho converts into at the part of delta kept for it.
    """

    scope: str
    label: str
    unit: str
    adjacency: str
    filter: str
    epsilon_limit: float
    delta_limit: float
    epsilon_spent: float
    delta_spent: float
    epsilon_reserved: float
    delta_reserved: float
    epsilon_left: float
    delta_left: float
    rho_limit: float | None
    rho_spent: float
    mutual_information_spent: float
    open_reservations: int
    sequence: int
    chain_head: str

    @property
    def left_wording(self) -> str:
        if self.rho_limit is None:
            return f"epsilon={self.epsilon_left:.6g} delta={self.delta_left:.3g}"
        return f"rho={max(0.0, self.rho_limit - self.rho_spent):.6g} delta={self.delta_left:.3g}"

    @property
    def left_said(self) -> Message:
        """Amount left, for a person: in epsilon and delta, neither larger than it is."""
        place = 10.0 ** (1 - math.floor(math.log10(self.delta_left))) if self.delta_left > 0 else 1.0
        delta = math.floor(round(self.delta_left * place, 6)) / place
        epsilon = math.floor(round(self.epsilon_left * 1000, 6)) / 1000
        if self.epsilon_left > 0 and not epsilon:
            return as_message("less than 0.001 epsilon and {delta:.2g} delta", delta=delta)
        return as_message("{epsilon:.3f} epsilon and {delta:.2g} delta", epsilon=epsilon, delta=delta)


@dataclass(frozen=True, slots=True)
class Remainder:
    """Amount an account may still spend; where `rho` is not None, it decides."""

    epsilon: float
    rho: float | None


def last_entry(account: BudgetAccount) -> LedgerEntry | None:
    return LedgerEntry.objects.filter(account=account).order_by("-sequence").first()


def promise(account: BudgetAccount) -> tuple[float, float]:
    """Return the epsilon and the delta an account promises to keep; asks nothing of the ledger."""
    return nano_spendable(account.epsilon_limit_nano), atto_spendable(account.delta_limit_atto)


def remainder(account: BudgetAccount) -> Remainder:
    """Return what may still be spent; also for a process that cannot read the ledger's entries."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT epsilon_nano, rho_nano FROM privacy_account_totals(%s)", [account.pk])
        epsilon_spent, rho_spent = cursor.fetchone() or (0, 0)
    return Remainder(
        epsilon=nano_spendable(account.epsilon_limit_nano - epsilon_spent),
        rho=None if account.rho_limit_nano is None else nano_spendable(account.rho_limit_nano - rho_spent),
    )


def guarantee(account: BudgetAccount) -> Guarantee:
    """Return the account's limit, what is spent and reserved of it, and where its chain stands."""
    return _guarantee(account, last_entry(account))


def guarantees(accounts: Iterable[BudgetAccount]) -> dict[int, Guarantee]:
    known = {account.pk: account for account in accounts}
    newest = LedgerEntry.objects.filter(account__in=known).order_by("account", "-sequence").distinct("account")
    last = {entry.account_id: entry for entry in newest}
    return {pk: _guarantee(account, last.get(pk)) for pk, account in known.items()}


def answers_paid(accounts: Iterable[int]) -> set[int]:
    """Return those of these accounts that have paid once and for all for every answer, so that nothing more comes."""
    paid = LedgerEntry.objects.filter(
        account__in=accounts, kind=EntryKind.COMMIT, parent__mechanism=RandomizedAnswersEvent.kind
    )
    return set(paid.values_list("account_id", flat=True))


def _guarantee(account: BudgetAccount, newest: LedgerEntry | None) -> Guarantee:
    last = newest or EMPTY
    epsilon_limit = nano_shown(account.epsilon_limit_nano)
    delta_limit = atto_shown(account.delta_limit_atto)
    if account.filter == Filter.PURE:
        kept_delta_atto = 0
        spent, reserved = last.epsilon_spent_nano, last.epsilon_reserved_nano
        epsilon_spent, epsilon_reserved = nano_shown(spent), nano_shown(reserved)
        epsilon_left = nano_spendable(account.epsilon_limit_nano - spent)
    else:
        kept_delta_atto = account.delta_limit_atto - account.delta_sum_limit_atto
        conversion_delta = atto_spendable(kept_delta_atto)
        epsilon_spent = min(epsilon_limit, zcdp_epsilon(nano_spent(last.rho_spent_nano), conversion_delta))
        settled = zcdp_epsilon(nano_spent(last.rho_spent_nano - last.rho_reserved_nano), conversion_delta)
        epsilon_reserved = epsilon_spent - settled
        epsilon_left = max(0.0, epsilon_limit - epsilon_spent)
    return Guarantee(
        scope=account.scope,
        label=account.plain_label,
        unit=account.unit,
        adjacency=account.adjacency,
        filter=account.filter,
        epsilon_limit=epsilon_limit,
        delta_limit=delta_limit,
        epsilon_spent=epsilon_spent,
        delta_spent=atto_shown(last.delta_spent_atto + kept_delta_atto),
        epsilon_reserved=epsilon_reserved,
        delta_reserved=atto_shown(last.delta_reserved_atto),
        epsilon_left=epsilon_left,
        delta_left=atto_spendable(account.delta_sum_limit_atto - last.delta_spent_atto),
        rho_limit=None if account.rho_limit_nano is None else nano_shown(account.rho_limit_nano),
        rho_spent=nano_shown(last.rho_spent_nano),
        mutual_information_spent=nano_spent(last.mi_spent_nano),
        open_reservations=last.open_reservations,
        sequence=last.sequence,
        chain_head=last.hash,
    )


def as_it_counts(account: BudgetAccount, cost: Cost) -> Cost:
    """Return a price in the epsilon by which the account's guarantee grows, under `zcdp` what its rho adds now."""
    if account.filter == Filter.PURE:
        return cost
    last = last_entry(account) or EMPTY
    delta = atto_spendable(account.delta_limit_atto - account.delta_sum_limit_atto)
    spent = nano_spent(last.rho_spent_nano)
    return Cost(zcdp_epsilon(spent + cost.rho, delta) - zcdp_epsilon(spent, delta), cost.delta, rho=cost.rho)


def entries_of(accounts: QuerySet[BudgetAccount], *, after: int = 0) -> QuerySet[LedgerEntry]:
    found = LedgerEntry.objects.filter(account__in=accounts, sequence__gt=after)
    return found.select_related("account", "parent").order_by("account", "sequence")


def statement(*accounts: BudgetAccount) -> QuerySet[LedgerEntry]:
    """Return what happened on accounts, newest first: one line for each operation, its settlement folded in.

    Adds `state` (a kind: the settlement's where there is one), `settled_at`, `settled_digest`, `settled_reason`,
    `settled_by` and `descends_from`, the sequence number of the line it descends from.
    """
    settlement = LedgerEntry.objects.filter(parent=OuterRef("pk"), kind__in=SETTLEMENTS)
    return (
        LedgerEntry.objects.filter(account__in=accounts)
        .exclude(kind__in=SETTLEMENTS)
        .annotate(
            state=Coalesce(Subquery(settlement.values("kind")[:1]), F("kind")),
            settled_at=Subquery(settlement.values("created_at")[:1]),
            settled_digest=Subquery(settlement.values("output_digest")[:1]),
            settled_reason=Subquery(settlement.values("reason")[:1]),
            settled_by=Subquery(settlement.values("actor")[:1]),
            descends_from=Case(
                When(parent__kind=EntryKind.COMMIT, then=F("parent__parent__sequence")), default=F("parent__sequence")
            ),
        )
        .order_by("-sequence" if len(accounts) == 1 else "-pk")
    )


def spending_by_mechanism(account: BudgetAccount) -> list[Spending]:
    return _spending(account, "mechanism")


def spending_by_subject(account: BudgetAccount) -> list[Spending]:
    return _spending(account, "subject")


def spending_by_person(account: BudgetAccount) -> list[Spending]:
    """Return what each person has spent, most first; work nobody asked for by name has an empty one."""
    return _spending(account, "actor")


def top_spenders(account: BudgetAccount) -> list[Spending]:
    return spending_by_mechanism(account)[:TOP_SPENDERS]


def payments_left(account: BudgetAccount, event: Event) -> int | None:
    """Return how many more times the account and its population's can pay for `event`; None where it is free."""
    times = [_times(account, price(account, event))]
    quota = quota_of(account)
    if quota is not None:
        times.append(_times(quota.population, shared_charge(quota, event)))
    return min((each for each in times if each is not None), default=None)


def _times(account: BudgetAccount, charge: Charge) -> int | None:
    last = last_entry(account) or EMPTY
    admits_by_epsilon = account.filter == Filter.PURE
    left = account.epsilon_limit_nano if admits_by_epsilon else account.rho_limit_nano or 0
    left -= last.epsilon_spent_nano if admits_by_epsilon else last.rho_spent_nano
    amount = charge.epsilon_nano if admits_by_epsilon else charge.rho_nano
    delta_left = account.delta_sum_limit_atto - last.delta_spent_atto
    times = [rest // cost for rest, cost in ((left, amount), (delta_left, charge.delta_atto)) if cost]
    return min(times, default=None)


def can_pay(account: BudgetAccount, events: Sequence[Event]) -> bool:
    """Say whether an account, and its population's, could admit these operations now; the database decides."""
    if not _can_pay(account, [price(account, event) for event in events]):
        return False
    quota = quota_of(account)
    return quota is None or _can_pay(quota.population, [shared_charge(quota, event) for event in events])


def _can_pay(account: BudgetAccount, charges: Sequence[Charge]) -> bool:
    last = last_entry(account) or EMPTY
    if last.delta_spent_atto + sum(charge.delta_atto for charge in charges) > account.delta_sum_limit_atto:
        return False
    if account.filter == Filter.PURE:
        wanted = sum(charge.epsilon_nano or 0 for charge in charges)
        return last.epsilon_spent_nano + wanted <= account.epsilon_limit_nano
    return last.rho_spent_nano + sum(charge.rho_nano or 0 for charge in charges) <= (account.rho_limit_nano or 0)


def quota_of(account: BudgetAccount) -> BudgetAccount | None:
    return BudgetAccount.objects.select_related("parent").filter(pk=account.pk, parent__isnull=False).first()


def shared_charge(quota: BudgetAccount, event: Event, *, entry: int = 1) -> Charge:
    """Return what `event` on the account of a quota costs a person of its population; refused where nothing says."""
    common = quota.population
    if isinstance(event, SecretSampleEvent) and (quota.records_per_person or 1) > 1:
        standing = _standing(quota).filter(mechanism=event.kind)
        refuse_mixed_samples([event, *(cast(SecretSampleEvent, event_from_json(each.event)) for each in standing)])
    try:
        people = PeopleEvent(
            event=event,
            unit=cast(Unit, common.unit),
            records_per_person=quota.records_per_person,
            scope=quota.scope,
            entry=entry,
        )
        return price(common, people)
    except UnsoundCombination:
        raise
    except ValueError as error:
        raise UnsoundCombination(as_message("{field}: {reason}", field=common.label, reason=error)) from error


def accounts_with_open_reservations() -> QuerySet[BudgetAccount]:
    newest = LedgerEntry.objects.filter(account=OuterRef("pk")).order_by("-sequence")
    return BudgetAccount.objects.alias(held=Subquery(newest.values("open_reservations")[:1])).filter(held__gt=0)


def _spending(account: BudgetAccount, field: str) -> list[Spending]:
    voided = LedgerEntry.objects.filter(parent=OuterRef("pk"), kind=EntryKind.VOID)
    rows = list(
        LedgerEntry.objects.filter(~Exists(voided), account=account, kind=EntryKind.RESERVE)
        .values_list(field)
        .annotate(
            operations=Count("pk"),
            epsilon_total=Sum("epsilon_nano", default=0),
            delta_total=Sum("delta_atto", default=0),
            rho_total=Sum("rho_nano", default=0),
        )
    )
    column = 0 if account.filter == Filter.PURE else 1
    total = max(1, sum((epsilon, rho)[column] for _, _, epsilon, _, rho in rows))
    total_delta = max(1, sum(delta for _, _, _, delta, _ in rows))
    spendings = [
        Spending(name, operations, epsilon, delta, rho, max((epsilon, rho)[column] / total, delta / total_delta))
        for name, operations, epsilon, delta, rho in rows
    ]
    return sorted(spendings, key=lambda spending: (-spending.share, spending.name))


# 200 Gaussian events of 200 sizes take about three seconds.
MOST_EVENTS = 200
KEPT_SECONDS = 30 * 24 * 3600


def has_numerical_epsilon(account: BudgetAccount) -> bool:
    """Say whether there is a delta to ask for, something spent, and not too much of it to compose while one waits."""
    return account.delta_limit_atto > 0 and 0 < _standing(account)[: MOST_EVENTS + 1].count() <= MOST_EVENTS


def known_numerical_epsilon(now: Guarantee) -> float | None:
    known: float | None = cache.get(_cache_key(now))
    return known


def numerical_epsilon(account: BudgetAccount, now: Guarantee) -> float | None:
    """Return the epsilon, at the account's delta, of all spent and reserved; None where there is none."""
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
