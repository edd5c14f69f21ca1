"""Random schedules of every operation, beside a plain Python ledger that must agree after each step."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar
from uuid import UUID, uuid4

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from privacy import errors, selectors
from privacy.charges import charge_of
from privacy.models import BudgetAccount, LedgerEntry
from privacy.services import ledger
from privacy.services.audit import audit_accounts

DIGEST = "ab" * 32
UNIT = 2.0**-10  # a power of two: every sum of it is exact in floats and in nano-units' rounding


@dataclass
class Held:
    """A reservation as the plain ledger knows it."""

    entry: LedgerEntry
    key: UUID
    charge: tuple[int, int]
    state: str = "open"


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
        spent = self.spent("open", "commit", "charge")
        return all(before + more <= limit for before, more, limit in zip(spent, charge, self.limit, strict=True))


class LedgerMachine(RuleBasedStateMachine):
    """One account; `filter` and `priced` are set by the test."""

    filter: ClassVar[str]
    priced: ClassVar[type]
    reservations = Bundle("reservations")

    @initialize(steps=st.integers(0, 60), delta_steps=st.integers(1, 40))
    def open(self, steps: int, delta_steps: int) -> None:
        ledger.charge_stale(older_than=timedelta(0))  # what the example before left open
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE privacy_ledgerentry")  # autovacuum never sees into this one transaction
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
        self.account.refresh_from_db()
        first = self.account.epsilon_limit_nano if self.filter == "pure" else self.account.rho_limit_nano
        return first or 0, self.account.delta_sum_limit_atto

    def _event(self, steps: int, delta_steps: int):
        delta = delta_steps * 2e-9
        if self.filter == "pure":
            return self.priced(epsilon=steps * UNIT, delta=delta)
        return self.priced(gaussian=True, rho=steps * 1e-6, delta=delta)

    @rule(target=reservations, steps=st.integers(0, 12), delta_steps=st.sampled_from([0, 0, 0, 1]))
    def reserve(self, steps: int, delta_steps: int) -> Held | None:
        event = self._event(steps, delta_steps)
        charge = charge_of(event, adjacency="null")
        amounts = ((charge.epsilon_nano if self.filter == "pure" else charge.rho_nano) or 0, charge.delta_atto)
        key = uuid4()
        if not self.plain.admits(amounts):
            with pytest.raises(errors.BudgetExceeded):
                ledger.reserve(account=self.account, event=event, purpose="p", key=key)
            return None
        entry = ledger.reserve(account=self.account, event=event, purpose="p", key=key)
        held = Held(entry, key, amounts)
        self.plain.held.append(held)
        self.plain.entries += 1
        return held

    @rule(held=reservations, how=st.sampled_from(["commit", "void"]))
    def settle(self, held: Held | None, how: str) -> None:
        if held is None:
            return
        act = (
            (lambda: ledger.commit(reservation=held.entry, output_digest=DIGEST))
            if how == "commit"
            else (lambda: ledger.void(reservation=held.entry, reason="no row was read"))
        )
        if held.state != "open":
            with pytest.raises(errors.AlreadySettled):
                act()
            return
        act()
        held.state = how
        self.plain.entries += 1

    @rule(held=reservations)
    def repeat(self, held: Held | None) -> None:
        if held is None:
            return
        again = ledger.reserve(
            account=self.account,
            event=self._event_of(held),
            purpose="p",
            key=held.key,
        )
        assert again.pk == held.entry.pk
        with pytest.raises(errors.KeyReused):
            ledger.reserve(account=self.account, event=self._event_of(held), purpose="other", key=held.key)

    def _event_of(self, held: Held):
        stored = {name: value for name, value in held.entry.event.items() if name not in ("kind", "version")}
        return self.priced(**stored)

    @rule(held=reservations)
    def descend(self, held: Held | None) -> None:
        if held is None:
            return
        asked = {"account": self.account, "operation": "rank", "purpose": "p", "output_digest": DIGEST}
        if held.state != "commit":
            with pytest.raises(errors.NotCommitted):
                ledger.record_post_processing(parent=held.entry, key=uuid4(), **asked)
            return
        ledger.record_post_processing(parent=held.entry, key=uuid4(), **asked)
        self.plain.entries += 1

    @rule()
    def charge_stale(self) -> None:
        stale = [each for each in self.plain.held if each.state == "open"]
        assert ledger.charge_stale(older_than=timedelta(0)) == len(stale)
        for each in stale:
            each.state = "charge"
        self.plain.entries += len(stale)

    @rule(steps=st.integers(0, 60), delta_steps=st.integers(1, 40))
    def change_limit(self, steps: int, delta_steps: int) -> None:
        before = self.plain.limit
        wanted = {
            "epsilon_limit": steps * UNIT if self.filter == "pure" else 0.01 * steps,
            "delta_limit": delta_steps * 1e-9,
        }
        try:
            ledger.change_limit(account=self.account, actor="hypothesis", reason="r", **wanted)
        except errors.BudgetExceeded:
            assert self._limits() == before
        else:
            self.plain.limit = self._limits()
            self.plain.entries += 1
            spent = self.plain.spent("open", "commit", "charge")
            assert all(amount <= limit for amount, limit in zip(spent, self.plain.limit, strict=True))

    @invariant()
    def the_totals_agree(self) -> None:
        last = selectors.last_entry(self.account)
        assert last is not None
        pure = self.filter == "pure"
        spent = (last.epsilon_spent_nano if pure else last.rho_spent_nano, last.delta_spent_atto)
        reserved = (last.epsilon_reserved_nano if pure else last.rho_reserved_nano, last.delta_reserved_atto)
        assert spent == self.plain.spent("open", "commit", "charge")
        assert reserved == self.plain.spent("open")
        assert last.open_reservations == sum(each.state == "open" for each in self.plain.held)
        assert last.sequence == self.plain.entries

    def teardown(self) -> None:
        if hasattr(self, "account"):
            (verdict,) = audit_accounts(scope=self.account.scope, marks={})
            assert not verdict.differing, verdict.differences


@pytest.mark.parametrize("filter_name", ["pure", "zcdp"])
def test_random_schedules_agree_with_a_plain_ledger(db, priced, filter_name):
    machine = type("Machine", (LedgerMachine,), {"filter": filter_name, "priced": priced})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=50,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )
