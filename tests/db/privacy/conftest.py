"""An account to spend from, events of any price, and a counter file of the test's own."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from uuid import uuid4

import pytest

from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost, no_proof
from privacy.accounting.events import Event
from tests.counting import new_counter

if TYPE_CHECKING:
    from privacy.ledger.models import BudgetAccount


@dataclass(frozen=True, slots=True)
class Priced(Event):
    """An event that costs what the test says; `series` makes rounds lean on each other as top-c rounds do."""

    epsilon: float = 0.0
    delta: float = 0.0
    rho: float = -1.0
    gaussian: bool = False
    unit: str = "record"
    series: str = "single"
    kind: ClassVar[str] = "priced_for_tests"
    valid_for: ClassVar[frozenset[Adjacency]] = frozenset({"null", "replace"})

    @property
    def needs_parent(self) -> bool:
        return self.series == "continued"

    def check_parent(self, parent: Event | None) -> None:
        Event.check_parent(self, parent)
        if self.needs_parent and (not isinstance(parent, Priced) or parent.series == "single"):
            raise ValueError("not a series")

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        assert adjacency in ADJACENCIES
        if adjacency not in self.valid_for:
            raise no_proof(self.kind, adjacency, "made so for a test")
        epsilon = math.inf if self.gaussian else self.epsilon
        return Cost(epsilon, self.delta, self.rho) if self.rho >= 0 else Cost(epsilon, self.delta)

    def summary(self) -> str:
        return f"priced at {self.epsilon}"


@pytest.fixture
def priced() -> type[Priced]:
    return Priced


@pytest.fixture(autouse=True)
def counter_path(settings, tmp_path: Path) -> Path:
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
    return settings.LEDGER_COUNTER_PATH


@pytest.fixture
def open_account(db) -> "Callable[..., BudgetAccount]":
    """Open accounts with epsilon 1 and delta 1e-6 where the test names nothing else."""
    from privacy.ledger import services as ledger  # noqa: PLC0415  # pytest loads this file before Django's apps

    def open_one(**terms) -> "BudgetAccount":
        given = {
            "scope": f"test:{uuid4()}",
            "label": "Test pool",
            "unit": "record",
            "filter": "pure",
            "epsilon_limit": 1.0,
            "delta_limit": 1e-6,
            "actor": "ada",
            "reason": "opened for a test",
        }
        return ledger.open_account(**given | terms)

    return open_one


@pytest.fixture
def account(open_account) -> "BudgetAccount":
    return open_account()
