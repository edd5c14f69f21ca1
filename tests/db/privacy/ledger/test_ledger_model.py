"""Random schedules of every operation, beside a plain Python ledger that must agree after each step.

DPAL_SCHEDULES sets how many schedules each quick test runs; the slow ones run 10,000 together.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from privacy import errors
from privacy.ledger import selectors
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.models import BudgetAccount, LedgerEntry
from privacy.ledger.rules import charge_of
from tests.owning import as_owner

DIGEST = "ab" * 32
UNIT = 2.0**-10  # a power of two: every sum of it is exact in floats and in nano-units' rounding
SCHEDULES = int(os.environ.get("DPAL_SCHEDULES", "50"))
SLOW_SCHEDULES = 5000
STEPS = 20
OTHER_PURPOSE = "other"


@dataclass
class Held:
    entry: LedgerEntry
    key: UUID
    charge: tuple[int, int]
    state: str = "reserve"


@dataclass
class PlainLedger:
    """Sums and states, nothing else."""

    limit: tuple[int, int]
    held: list[Held] = field(default_factory=list)
    entries: int = 1

    def spent(self, *states: str) -> tuple[int, int]:
        counted = [each.charge for each in self.held if each.state in states]
        return sum(charge[0] for charge in counted), sum(charge[1] for charge in counted)

    def admits(self, charge: tuple[int, int]) -> bool:
        spent = self.spent("reserve", "commit", "charge")
        return all(before + more <= limit for before, more, limit in zip(spent, charge, self.limit, strict=True))


class LedgerMachine(RuleBasedStateMachine):
    """One account; `filter` and `priced` are set by the test."""

    filter: ClassVar[str]
    priced: ClassVar[type]
    reservations = Bundle("reservations")

    @initialize(steps=st.integers(0, 90), delta_steps=st.integers(1, 40))
    def open(self, steps: int, delta_steps: int) -> None:
        # Each schedule is undone, so that the next one finds the tables as small.
        self.before = transaction.savepoint()
        self.account: BudgetAccount = ledger.open_account(
            scope=f"model:{uuid4()}",
            label="Model",
            unit="record",
            filter=self.filter,
            epsilon_limit=steps * UNIT if self.filter == "pure" else 0.01 * steps,
            delta_limit=delta_steps * 1e-9,
            actor="hypothesis",
            reason="a random schedule",
        )
        self.plain = PlainLedger(self._limits())

    def _limits(self) -> tuple[int, int]:
        first = self.account.epsilon_limit_nano if self.filter == "pure" else self.account.rho_limit_nano
        return first or 0, self.account.delta_sum_limit_atto

    def _event(self, steps: int, delta_steps: int):
        delta = delta_steps * 2e-9
        if self.filter == "pure":
            return self.priced(epsilon=steps * UNIT, delta=delta)
        return self.priced(gaussian=True, rho=steps * 1e-6, delta=delta)

    def _reserve(self, event, key: UUID, purpose: str = "p") -> LedgerEntry:
        return ledger.reserve(account=self.account, event=event, purpose=purpose, key=key)

    @rule(target=reservations, steps=st.integers(0, 12), delta_steps=st.sampled_from([0, 0, 0, 1]))
    def reserve(self, steps: int, delta_steps: int):
        event, key = self._event(steps, delta_steps), uuid4()
        charge = charge_of(event, adjacency="null")
        amounts = ((charge.epsilon_nano if self.filter == "pure" else charge.rho_nano) or 0, charge.delta_atto)
        if not self.plain.admits(amounts):
            assert_refused(errors.BudgetExceeded, lambda: self._reserve(event, key))
            return multiple()  # nothing to settle
        held = Held(self._reserve(event, key), key, amounts)
        self.plain.held.append(held)
        self._agrees(held.entry)
        return held

    @rule(held=reservations, how=st.sampled_from(["commit", "void", "charge"]))
    def settle(self, held: Held, how: str) -> None:
        def act() -> LedgerEntry:
            if how == "commit":
                return ledger.commit(reservation=held.entry, output_digest=DIGEST)
            return getattr(ledger, how)(reservation=held.entry, reason="a test")

        if held.state != "reserve":
            assert_refused(errors.AlreadySettled, act)
            return
        entry = act()
        held.state = how
        self._agrees(entry)

    @rule(held=reservations, purpose=st.sampled_from(["p", OTHER_PURPOSE]))
    def repeat(self, held: Held, purpose: str) -> None:
        stored = {name: value for name, value in held.entry.event.items() if name not in ("kind", "version")}
        event = self.priced(**stored)
        if purpose == OTHER_PURPOSE:
            assert_refused(errors.KeyReused, lambda: self._reserve(event, held.key, purpose))
        elif held.state == "void":
            assert_refused(errors.AlreadySettled, lambda: self._reserve(event, held.key, purpose))
        else:
            assert self._reserve(event, held.key, purpose).pk == held.entry.pk

    @rule(held=reservations)
    def descend(self, held: Held) -> None:
        def act() -> LedgerEntry:
            return ledger.record_post_processing(
                account=self.account,
                parent=held.entry,
                operation="rank",
                purpose="p",
                output_digest=DIGEST,
                key=uuid4(),
            )

        if held.state == "commit":
            self._agrees(act())
        else:
            assert_refused(errors.NotCommitted, act)

    @precondition(lambda self: any(each.state == "reserve" for each in self.plain.held))
    @rule()
    def charge_stale(self) -> None:
        stale = [each for each in self.plain.held if each.state == "reserve"]
        assert ledger.charge_stale(older_than=timedelta(0)) == len(stale)
        for each in stale:
            each.state = "charge"
        self.plain.entries += len(stale) - 1
        self._agrees(selectors.last_entry(self.account))

    @precondition(lambda self: self.plain.held)
    @rule(steps=st.integers(0, 90), delta_steps=st.integers(1, 40))
    def change_limit(self, steps: int, delta_steps: int) -> None:
        wanted = {
            "epsilon_limit": steps * UNIT if self.filter == "pure" else 0.01 * steps,
            "delta_limit": delta_steps * 1e-9,
        }
        try:
            entry = ledger.change_account_limits(account=self.account, actor="hypothesis", reason="r", **wanted)
        except errors.BudgetExceeded:
            assert self._limits() == self.plain.limit
        else:
            self.plain.limit = self._limits()
            self._agrees(entry)
            spent = self.plain.spent("reserve", "commit", "charge")
            assert all(amount <= limit for amount, limit in zip(spent, self.plain.limit, strict=True))

    def _agrees(self, newest: LedgerEntry) -> None:
        self.plain.entries += 1
        self._totals_agree(newest)

    def _totals_agree(self, newest: LedgerEntry) -> None:
        pure = self.filter == "pure"
        spent = (newest.epsilon_spent_nano if pure else newest.rho_spent_nano, newest.delta_spent_atto)
        reserved = (newest.epsilon_reserved_nano if pure else newest.rho_reserved_nano, newest.delta_reserved_atto)
        assert newest.sequence == self.plain.entries
        assert spent == self.plain.spent("reserve", "commit", "charge")
        assert reserved == self.plain.spent("reserve")
        assert newest.open_reservations == sum(each.state == "reserve" for each in self.plain.held)

    def teardown(self) -> None:
        if not hasattr(self, "before"):
            return
        try:
            if hasattr(self, "plain"):
                self._ends_well()
        finally:
            transaction.savepoint_rollback(self.before)
            transaction.savepoint_commit(self.before)
            # The counter's turn never comes; waiting for it, thousands of schedules would slow each rollback.
            connection.run_on_commit.clear()

    def _ends_well(self) -> None:
        self._totals_agree(selectors.last_entry(self.account))
        states = selectors.statement(self.account).filter(kind="reserve").values_list("pk", "state")
        assert dict(states) == {each.entry.pk: each.state for each in self.plain.held}
        (verdict,) = audit_accounts(scope=self.account.scope, marks=None)
        assert not verdict.differing, verdict.differences


def assert_refused(error: type[Exception], act: Callable[[], object]) -> None:
    try:
        act()
    except error:
        return
    raise AssertionError(f"not refused as {error.__name__}")


def run_schedules(filter_name: str, priced: type, schedules: int, **options: object) -> None:
    machine = type("Machine", (LedgerMachine,), {"filter": filter_name, "priced": priced})
    chosen = {
        "max_examples": schedules,
        "stateful_step_count": STEPS,
        "deadline": None,
        "suppress_health_check": list(HealthCheck),
        "database": None,
    }
    run_state_machine_as_test(machine, settings=settings(**chosen | options))


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize("filter_name", ["pure", "zcdp"])
def test_random_schedules_agree_with_a_plain_ledger(db, priced, filter_name):
    run_schedules(filter_name, priced, SCHEDULES)


@pytest.mark.slow
@pytest.mark.parametrize("filter_name", ["pure", "zcdp"])
def test_ten_thousand_random_schedules_agree_with_a_plain_ledger(db, priced, filter_name):
    run_schedules(filter_name, priced, SLOW_SCHEDULES)


ADMIT = "privacy_admit_entry"
FAULTS = {
    "a void gives nothing back": (ADMIT, "spent_sign := -1;", "spent_sign := 0;"),
    "a charge gives everything back": (
        ADMIT,
        "IF NEW.kind = 'void' THEN",
        "IF NEW.kind = 'charge' THEN spent_sign := -1; END IF; IF NEW.kind = 'void' THEN",
    ),
    "a settlement leaves it reserved": (ADMIT, "reserved_sign := -1;", "reserved_sign := 0;"),
    "the limit is never reached": (ADMIT, "NEW.epsilon_spent_nano > account", "NEW.epsilon_spent_nano >= account"),
    "the limit of delta is not kept": (ADMIT, "NEW.delta_spent_atto > account", "FALSE AND 0 > account"),
    "a limit may fall below what is spent": (
        "privacy_check_limits",
        "last.epsilon_spent_nano > epsilon_limit",
        "last.epsilon_spent_nano > epsilon_limit + 5000000",
    ),
    "anything may be descended from": ("privacy_is_committed", "settlement.kind = 'commit'", "TRUE"),
    "the chain forgets an entry": (ADMIT, "NEW.previous_hash := last.hash;", "NEW.previous_hash := genesis;"),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_planted_in_the_database_is_found(db, priced, fault):
    """Undone with the test's transaction."""
    function, right, wrong = FAULTS[fault]
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_functiondef(%s::regproc)", [function])
        (definition,) = cursor.fetchone()
        assert right in definition
        cursor.execute(definition.replace(right, wrong))
    with pytest.raises((AssertionError, errors.PrivacyError)):
        run_schedules("pure", priced, 300, phases=[Phase.generate], derandomize=True, print_blob=False)
