import threading
from collections import Counter
from uuid import uuid4

import pytest
from django.db import connection

from privacy import errors
from privacy.ledger import populations, selectors
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.counter import site_counter
from privacy.ledger.models import EntryKind
from tests.db.privacy.ledger.test_ledger_threads import outcomes, reserve

pytestmark = pytest.mark.django_db(transaction=True)
DIGEST = "ab" * 32


def opened(epsilon_limit: float):
    return populations.open_shared_account(
        name=f"People {uuid4()}",
        unit="contributor",
        filter="pure",
        epsilon_limit=epsilon_limit,
        delta_limit=1e-6,
        actor="ada",
    )


def join(population, *accounts, number=1):
    return populations.join_population(population=population, accounts=accounts, records_per_person=number, actor="ada")


def sound(*accounts) -> None:
    marks = site_counter().marks()
    for account in accounts:
        (verdict,) = audit_accounts(scope=account.scope, marks=marks)
        assert not verdict.differing, verdict.differences


def test_fifty_at_once_over_five_projects_never_pass_the_common_limit(open_account, priced):
    accounts, population = [open_account(epsilon_limit=1.0) for _ in range(5)], opened(1.75)
    join(population, *accounts, number=2)
    # Seven reservations of an eighth, twice for a person with two records.
    ended = outcomes(50, 50, lambda number: reserve(accounts[number % 5], priced(0.125)))
    assert ended == {"done": 7, "BudgetExceeded": 43}
    now = selectors.guarantee(population)
    assert (now.epsilon_left, now.epsilon_spent, now.open_reservations) == (0.0, 1.75, 7)
    assert sum(selectors.guarantee(account).epsilon_spent for account in accounts) == 0.875
    sound(population, *accounts)


def test_a_project_that_joins_while_it_spends_loses_nothing_of_it(open_account, priced):
    account, population = open_account(), opened(100.0)
    started = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            started.wait(timeout=120)
            join(population, account, number=3)
            return
        reserve(account, priced(2.0**-10))
        started.set()

    assert outcomes(64, 8, work) == {"done": 64}
    spent = selectors.last_entry(account).epsilon_spent_nano
    standing = account.entries.filter(kind=EntryKind.RESERVE)
    assert standing.count() == 63
    repeated = population.entries.filter(kind=EntryKind.RESERVE)
    assert repeated.count() == 63
    assert sum(entry.epsilon_nano for entry in repeated) == pytest.approx(3 * spent, abs=3 * 63)
    sound(population, account)


def test_settlements_and_reservations_of_two_projects_do_not_lock_each_other_out(open_account, priced):
    accounts, population = [open_account(epsilon_limit=1.0) for _ in range(2)], opened(100.0)
    join(population, *accounts)

    def work(number: int) -> None:
        held = reserve(accounts[number % 2], priced(2.0**-10))
        (ledger.void if number % 3 else ledger.charge)(reservation=held, reason="a test")

    assert outcomes(60, 6, work) == Counter({"done": 60})
    assert selectors.last_entry(population).open_reservations == 0
    assert selectors.last_entry(population).epsilon_spent_nano == 20 * 976_563
    sound(population, *accounts)
    connection.close()


def test_nobody_joins_two_populations_at_once(open_account):
    account, groups = open_account(), [opened(1.0) for _ in range(4)]

    def work(number: int) -> None:
        try:
            join(groups[number], account)
        except errors.UnsoundCombination:
            raise

    assert outcomes(4, 4, work) == {"done": 1, "UnsoundCombination": 3}
