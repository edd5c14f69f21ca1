"""Projects that share people, beside a plain Python model of who may spend what: the steps of random schedules.

Each step is one call of the product, on the real database, and what came of it is held against the model at once.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from uuid import UUID, uuid4

from django.db import IntegrityError, connection

from privacy import errors
from privacy.accounting.cost import delta_limit_to_atto, epsilon_limit_to_nano
from privacy.ledger import populations, sharing
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.entries import broken_rule
from privacy.ledger.models import BudgetAccount, EntryKind, LedgerEntry

DIGEST = "ab" * 32
UNIT = 2.0**-10
DELTA_UNIT = 2e-9
# One unit of a common limit that sums rhos, as an epsilon.
RHO_UNIT = 0.01
PROJECTS = 4
ALIVE = ("reserve", "commit", "charge")
SUMS = """
    SELECT epsilon_spent_nano, rho_spent_nano, delta_spent_atto, open_reservations FROM privacy_ledgerentry
    WHERE account_id = %s ORDER BY sequence DESC LIMIT 1
"""

Amounts = tuple[Fraction, Fraction]


@dataclass
class Held:
    """A reservation as the model knows it: who made it, at which epsilon, rho and delta."""

    entry: LedgerEntry
    project: int
    epsilon: Fraction
    delta: Fraction
    state: str = "reserve"


@dataclass
class Member:
    """A project: what it may spend, and how many records of one person it may hold."""

    account: BudgetAccount
    group: int | None = None
    number: int = 1


@dataclass
class Model:
    members: list[Member]
    commons: list[BudgetAccount]
    held: list[Held] = field(default_factory=list)

    def own(self, project: int) -> list[Amounts]:
        return [(each.epsilon, each.delta) for each in self.alive() if each.project == project]

    def of_people(self, group: int) -> list[Amounts]:
        return [
            of_person(each.epsilon, each.delta, self.members[each.project].number)
            for each in self.alive()
            if self.members[each.project].group == group
        ]

    def alive(self) -> list[Held]:
        return [each for each in self.held if each.state in ALIVE]


def of_person(epsilon: Fraction, delta: Fraction, number: int) -> Amounts:
    """Return what a person with so many records loses, straight from the theorem: a sum of `number` steps."""
    grown = sum(math.exp(step * float(epsilon)) for step in range(number))
    return number * epsilon, min(Fraction(1), delta * Fraction(grown)) if delta else Fraction(0)


@dataclass
class World:
    filter: str
    priced: type
    model: Model
    outcomes: Counter[str] = field(default_factory=Counter)

    @classmethod
    def opened(cls, filter_name: str, priced: type, limits: list[int], common: list[int], deltas: list[int]) -> "World":
        members = [
            Member(
                ledger.open_account(
                    scope=f"model:{uuid4()}",
                    label="Model",
                    unit="record",
                    filter="pure",
                    epsilon_limit=steps * UNIT,
                    delta_limit=2e-8,
                    actor="hypothesis",
                    reason="a random schedule",
                )
            )
            for steps in limits
        ]
        commons = [
            populations.open_shared_account(
                name=f"model {uuid4()}",
                unit="contributor",
                filter=filter_name,
                epsilon_limit=steps * common_unit(filter_name),
                delta_limit=delta * DELTA_UNIT,
                actor="hypothesis",
            )
            for steps, delta in zip(common, deltas, strict=True)
        ]
        return cls(filter_name, priced, Model(members, commons))

    def reserve(self, project: int, steps: int, delta_steps: int) -> Held | None:
        """Reserve for a project; refused exactly where it, or the people it shares, would pass their limit."""
        member, delta = self.model.members[project], delta_steps * DELTA_UNIT
        event = self.priced(epsilon=steps * UNIT, delta=delta)
        amounts = Fraction(steps * UNIT), Fraction(delta)
        wanted = [*self.model.own(project), amounts]
        own = admitted = admits(wanted, member.account)
        if member.group is not None:
            people = [*self.model.of_people(member.group), of_person(*amounts, member.number)]
            admitted = admitted and admits(people, self.model.commons[member.group])
        try:
            entry = ledger.reserve(account=member.account, event=event, purpose="p", key=uuid4())
        except errors.BudgetExceeded:
            assert not admitted or is_at_the_edge(member, wanted)
            self.outcomes["refused for its people" if own else "refused for itself"] += 1
            self.within(project)
            return None
        assert admitted
        self.outcomes["reserved" if member.group is None else "reserved in both"] += 1
        held = Held(entry, project, *amounts)
        self.model.held.append(held)
        self.within(project)
        return held

    def settle(self, held: Held, how: str) -> None:
        if held.state != "reserve":
            return
        if how == "commit":
            ledger.commit(reservation=held.entry, output_digest=DIGEST)
        else:
            getattr(ledger, how)(reservation=held.entry, reason="a test")
        held.state = how
        self.outcomes[how] += 1
        self.within(held.project)

    def join(self, project: int, group: int, number: int) -> None:
        member, common = self.model.members[project], self.model.commons[group]
        past = self.model.own(project)
        try:
            populations.join_population(
                population=common, accounts=[member.account], records_per_person=number, actor="hypothesis"
            )
        except errors.UnsoundCombination:
            assert member.group is not None
            self.outcomes["stays where it is"] += 1
            return
        except errors.BudgetExceeded:
            member = Member(member.account, group, number)
            whole = [*self.model.of_people(group), *(of_person(*each, number) for each in past)]
            assert not admits(whole, common) or is_at_the_edge(member, past)
            self.outcomes["refused for its past"] += 1
        else:
            assert member.group is None
            member.group, member.number = group, number
            self.outcomes["joined with a past" if past else "joined"] += 1
        self.within(project)

    def change_limit(self, group: int, steps: int, delta_steps: int) -> None:
        """Lower a common limit, never below what people have lost; nobody raises one alone."""
        account = self.model.commons[group]
        before = account.epsilon_limit_nano, account.delta_limit_atto
        epsilon, delta = steps * common_unit(self.filter), delta_steps * DELTA_UNIT
        wanted = epsilon_limit_to_nano(Decimal(repr(epsilon))), delta_limit_to_atto(Decimal(repr(delta)))
        higher = any(more > limit for more, limit in zip(wanted, before, strict=True))
        refusal = ""
        try:
            ledger.change_account_limits(
                account=account, epsilon_limit=epsilon, delta_limit=delta, actor="hypothesis", reason="r"
            )
        except errors.BudgetExceeded:
            refusal = "spent"
        except IntegrityError as error:
            refusal = broken_rule(error)
        account.refresh_from_db()
        stands = (account.epsilon_limit_nano, account.delta_limit_atto)
        assert stands == (before if refusal else wanted)
        # A limit that is lower in one of the two may fall below what is spent, and is refused for either reason.
        assert refusal in (("annotation_limit_needs_second", "spent") if higher else ("", "spent"))
        assert admits(self.model.of_people(group), account)
        self.outcomes[f"limit: {refusal or 'lowered'}"] += 1

    def within(self, *projects: int) -> None:
        """Hold the accounts of projects and of their populations against the model; nobody has overspent."""
        for number in projects:
            assert admits(self.model.own(number), self.model.members[number].account)
        for group in {self.model.members[number].group for number in projects} - {None}:
            common = self.model.commons[group]
            alive = self.model.of_people(group)
            assert admits(alive, common)
            epsilon_nano, rho_nano, delta_atto, open_reservations = sums_of(common)
            assert sum(math.ceil(epsilon * 10**9) for epsilon, _ in alive) == epsilon_nano
            assert sum(math.ceil(epsilon**2 / 2 * 10**9) for epsilon, _ in alive) == rho_nano
            # What the ledger rounds up for a group, it rounds up by less than one part in 2^40.
            delta = sum(delta for _, delta in alive) * 10**18
            assert delta - 1 <= delta_atto <= delta * (1 + Fraction(1, 2**40)) + len(alive)
            assert open_reservations == sum(
                each.state == "reserve" and self.model.members[each.project].group == group for each in self.model.held
            )

    def ends_well(self, *, audited: bool) -> None:
        self.within(*range(PROJECTS))
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        if not audited:
            return
        for group, common in enumerate(self.model.commons):
            (verdict,) = audit_accounts(scope=common.scope, marks=None)
            assert not verdict.differing, verdict.differences
            repeated = common.entries.filter(kind=EntryKind.RESERVE).values_list("idempotency_key", flat=True)
            ours = [
                sharing.shared_key(key_of(each), common)
                for each in self.model.alive()
                if self.model.members[each.project].group == group
            ]
            assert set(ours) <= set(repeated)


def sums_of(account: BudgetAccount) -> tuple[int, int, int, int]:
    with connection.cursor() as cursor:
        cursor.execute(SUMS, [account.pk])
        found: tuple[int, int, int, int] = cursor.fetchone()
    return found


def common_unit(filter_name: str) -> float:
    return UNIT if filter_name == "pure" else RHO_UNIT


def admits(held: list[Amounts], account: BudgetAccount) -> bool:
    """Exactly, in fractions; the ledger rounds each amount up to a whole unit, which may refuse a hair earlier."""
    if sum(math.ceil(delta * 10**18) for _, delta in held) > account.delta_sum_limit_atto:
        return False
    if account.filter == "pure":
        return sum(math.ceil(epsilon * 10**9) for epsilon, _ in held) <= account.epsilon_limit_nano
    return sum(math.ceil(epsilon**2 / 2 * 10**9) for epsilon, _ in held) <= (account.rho_limit_nano or 0)


def is_at_the_edge(member: Member, wanted: list[Amounts]) -> bool:
    """A group's delta is rounded up: only there may the ledger refuse what fractions would admit."""
    return member.group is not None and member.number > 1 and any(delta for _, delta in wanted)


def key_of(held: Held) -> UUID:
    assert held.entry.idempotency_key is not None
    return held.entry.idempotency_key
