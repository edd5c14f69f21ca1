import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from django.db import connection, transaction

from privacy import errors
from privacy.ledger import populations, selectors
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.counter import site_counter
from privacy.ledger.models import EntryKind

pytestmark = pytest.mark.django_db(transaction=True)
DIGEST = "ab" * 32


def outcomes(attempts: int, workers: int, work: Callable[[int], object]) -> Counter[str]:
    ready = threading.Barrier(workers)

    def attempt(worker: int) -> Counter[str]:
        ended: Counter[str] = Counter()
        ready.wait(timeout=120)
        try:
            for number in range(worker, attempts, workers):
                try:
                    work(number)
                    ended["done"] += 1
                except errors.PrivacyError as error:
                    ended[type(error).__name__] += 1
        finally:
            connection.close()
        return ended

    with ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(attempt, range(workers)), Counter())


def reserve(account, event, **given):
    return ledger.reserve(account=account, event=event, **{"purpose": "a test", "key": uuid4()} | given)


@pytest.mark.slow
def test_two_hundred_threads_on_room_for_seven(open_account, priced):
    account = open_account(epsilon_limit=0.875)
    gate = threading.BoundedSemaphore(60)  # connections, not threads, are scarce

    def work(_number: int) -> None:
        with gate:
            try:
                reserve(account, priced(0.125))
            finally:
                connection.close()

    assert outcomes(200, 200, work) == {"done": 7, "BudgetExceeded": 193}
    now = selectors.guarantee(account)
    assert (now.epsilon_left, now.open_reservations, now.sequence) == (0.0, 7, 8)
    (verdict,) = audit_accounts(scope=account.scope, marks=site_counter().marks())
    assert not verdict.differing


def test_the_same_key_from_many_threads_pays_once(open_account, priced):
    account, key = open_account(), uuid4()
    assert outcomes(16, 8, lambda _: reserve(account, priced(0.125), key=key)) == {"done": 16}
    assert selectors.guarantee(account).epsilon_spent == 0.125


def test_many_settle_one_reservation_and_one_succeeds(open_account, priced):
    account = open_account()
    held = reserve(account, priced(0.125))

    def settle(number: int) -> None:
        if number % 2:
            ledger.void(reservation=held, reason="no row was read")
        else:
            with transaction.atomic():
                ledger.commit(reservation=held, output_digest=DIGEST)

    assert outcomes(16, 8, settle) == {"done": 1, "AlreadySettled": 15}


def test_a_reservation_waits_for_a_commit_under_way_and_not_for_other_accounts(open_account, priced):
    account, other = open_account(), open_account()
    held = reserve(account, priced(0.5))
    done = threading.Event()

    def reserve_beside() -> None:
        reserve(account, priced(0.5))
        done.set()
        connection.close()

    waiting = threading.Thread(target=reserve_beside)
    with transaction.atomic():
        ledger.commit(reservation=held, output_digest=DIGEST)
        waiting.start()
        assert not done.wait(timeout=0.3)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: (reserve(other, priced(0.5)), connection.close())).result(timeout=120)
    waiting.join(timeout=120)
    assert done.is_set()


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_an_old_snapshot_cannot_overspend(open_account, priced, level):
    """A transaction that cannot see the newest entry is refused rather than admitted on old totals."""
    account = open_account()
    with connection.cursor() as cursor, transaction.atomic():
        cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        cursor.execute("SELECT count(*) FROM privacy_ledgerentry")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: (reserve(account, priced(1.0)), connection.close())).result(timeout=120)
        with pytest.raises(Exception, match=r"duplicate key|could not serialize"), transaction.atomic():
            cursor.execute(
                "INSERT INTO privacy_ledgerentry "
                "(account_id, kind, mechanism, event_json, purpose, idempotency_key, epsilon_nano) "
                "VALUES (%s, 'reserve', 'm', %s, 'p', %s, 1000000000)",
                [account.pk, '{"kind": "m"}', uuid4()],
            )
    assert selectors.guarantee(account).sequence == 2


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
