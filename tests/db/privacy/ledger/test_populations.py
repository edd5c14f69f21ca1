import math
from dataclasses import asdict, replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from privacy import errors
from privacy.accounting.events import GaussianEvent, MinibatchSgdEvent, PeopleEvent, SecretSampleEvent
from privacy.ledger import populations, selectors, sharing
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.counter import site_counter
from privacy.ledger.entries import Draft, append, broken_rule
from privacy.ledger.models import BudgetAccount, EntryKind, LedgerEntry
from privacy.ledger.rules import price
from tests.forging import History, Step, said_by_auditor
from tests.owning import as_owner, without_rules
from tests.refusing import hold_everything, refused_late

pytestmark = pytest.mark.django_db
DIGEST = "ab" * 32
# One INSERT between the two ends of its transaction: what it was before there were populations.
STATEMENTS_ALONE = 3


@pytest.fixture
def population(db) -> BudgetAccount:
    return opened()


def opened(**terms) -> BudgetAccount:
    given = {"unit": "contributor", "filter": "pure", "epsilon_limit": 2.0, "delta_limit": 1e-5}
    return populations.open_shared_account(name=f"People {uuid4()}", actor="ada", **given | terms)


def join(population, *accounts, number=1):
    return populations.join_population(population=population, accounts=accounts, records_per_person=number, actor="ada")


def reserve(account, event, **given):
    return ledger.reserve(account=account, event=event, **{"purpose": "a test", "key": uuid4()} | given)


def spent(account: BudgetAccount) -> tuple[int, int, int]:
    last = selectors.last_entry(account)
    return last.epsilon_spent_nano, last.delta_spent_atto, last.rho_spent_nano


def sound(*accounts: BudgetAccount) -> None:
    hold_everything()
    for account in accounts:
        (verdict,) = audit_accounts(scope=account.scope, marks=None)
        assert not verdict.differing, verdict.differences


def test_a_reservation_counts_in_both_and_a_void_gives_both_back(open_account, priced, population):
    first, second = open_account(), open_account()
    join(population, first, number=2)
    join(population, second, number=3)
    held = reserve(first, priced(0.25))
    reserve(second, priced(0.125, delta=1e-7))
    assert spent(first)[0] == 250_000_000
    assert spent(population)[0] == 500_000_000 + 375_000_000
    # delta (1 + e^eps + e^2eps) of a group of three.
    grown = 1e-7 * (1 + math.exp(0.125) + math.exp(0.25))
    assert 1 <= spent(population)[1] / (1e18 * grown) < 1 + 1e-9
    ledger.void(reservation=held, reason="nothing was read")
    assert spent(population)[0] == 375_000_000
    sound(first, second, population)


def test_what_the_population_cannot_pay_is_refused_though_the_project_could(open_account, priced, population):
    first, second = open_account(), open_account()
    join(population, first, second, number=4)
    reserve(first, priced(0.375))
    with pytest.raises(errors.BudgetExceeded, match=r"People .*: people costs epsilon=1.5"):
        reserve(second, priced(0.375))
    assert selectors.guarantee(second).epsilon_spent == 0
    reserve(second, priced(0.125))
    assert selectors.guarantee(population).epsilon_left == 0
    sound(first, second, population)


def test_a_project_cannot_overspend_its_quota_though_the_population_could(open_account, priced, population):
    account = open_account(epsilon_limit=0.25)
    join(population, account)
    with pytest.raises(errors.BudgetExceeded, match="Test pool"):
        reserve(account, priced(0.5))
    assert spent(population) == (0, 0, 0)


@pytest.mark.parametrize("settle", ["commit", "charge", "void"])
def test_settling_settles_both(open_account, priced, population, settle):
    account = open_account()
    join(population, account, number=2)
    held = reserve(account, priced(0.25))
    if settle == "commit":
        ledger.commit(reservation=held, output_digest=DIGEST)
    else:
        getattr(ledger, settle)(reservation=held, reason="a test")
    last = selectors.last_entry(population)
    assert (last.kind, last.open_reservations, last.epsilon_reserved_nano) == (settle, 0, 0)
    sound(account, population)


def test_what_nobody_settled_is_charged_once_in_both(open_account, priced, population):
    account = open_account()
    join(population, account)
    reserve(account, priced(0.25))
    assert ledger.charge_stale(older_than=timedelta(0)) == 1
    assert selectors.last_entry(population).kind == "charge"
    sound(account, population)


def test_the_same_key_pays_once_in_both(open_account, priced, population):
    account, key = open_account(), uuid4()
    join(population, account)
    assert reserve(account, priced(0.25), key=key).pk == reserve(account, priced(0.25), key=key).pk
    assert spent(population)[0] == 250_000_000


def test_what_was_spent_before_joining_is_charged_and_voids_are_not(open_account, priced, population):
    account = open_account()
    committed, voided, held = (reserve(account, priced(0.125, delta=1e-9)) for _ in range(3))
    ledger.commit(reservation=committed, output_digest=DIGEST)
    ledger.void(reservation=voided, reason="nothing was read")
    (quota,) = join(population, account, number=2)
    last = selectors.last_entry(population)
    assert (last.epsilon_spent_nano, last.epsilon_reserved_nano, last.open_reservations) == (
        500_000_000,
        250_000_000,
        1,
    )
    ledger.commit(reservation=held, output_digest=DIGEST)
    assert selectors.last_entry(population).open_reservations == 0
    assert list(sharing.unrepeated(quota)) == []
    newest = account.entries.filter(kind="limit_change").get()
    assert newest.reason == f"joined population {population.plain_label}, at most 2 records per person"
    sound(account, population)


def test_a_past_the_population_cannot_pay_leaves_everything_as_it_was(open_account, priced, population):
    account = open_account()
    reserve(account, priced(0.75))
    before = spent(account), account.entries.count()
    with pytest.raises(errors.BudgetExceeded, match=r"more than .* has left"):
        join(population, account, number=3)
    assert (spent(account), account.entries.count()) == before
    assert not BudgetAccount.objects.filter(parent__isnull=False).exists()
    assert spent(population) == (0, 0, 0)


def test_rhos_are_summed_by_the_square_of_the_group(open_account, population):
    account = open_account(filter="zcdp", epsilon_limit=4.0)
    common = opened(filter="zcdp", epsilon_limit=20.0)
    join(common, account, number=3)
    event = GaussianEvent(sensitivity_l2=1.0, sigma=10.0)
    reserve(account, event)
    assert 5_000_000 <= spent(account)[2] <= 5_000_001
    assert 45_000_000 <= spent(common)[2] <= 45_000_001
    sound(account, common)


def test_a_pure_project_pays_a_population_that_sums_rhos(open_account, priced):
    account, common = open_account(), opened(filter="zcdp", epsilon_limit=4.0)
    join(common, account, number=2)
    reserve(account, priced(0.125))
    assert spent(common)[2] == 31_250_000  # (2 · 0.125)² / 2
    sound(account, common)


@pytest.mark.parametrize(
    ("account", "common", "number", "rule"),
    [
        ({}, {}, None, "declare the maximum number of records"),
        ({}, {}, 0, "must be from 1 to"),
        ({}, {}, 10_001, "must be from 1 to"),
        ({"unit": "answer", "adjacency": "replace"}, {}, 1, "differ in adjacency"),
        ({"unit": "answer"}, {}, 1, "cannot join a population"),
        ({"unit": "contributor"}, {"unit": "record"}, 1, "only a population of contributors"),
        ({"filter": "zcdp"}, {}, 1, "in rho cannot join"),
    ],
)
def test_what_has_no_conversion_is_refused_by_its_rule(open_account, account, common, number, rule):
    with pytest.raises(errors.UnsoundCombination, match=rule):
        join(opened(**common), open_account(**account), number=number)
    assert not BudgetAccount.objects.filter(parent__isnull=False).exists()


def test_an_operation_without_a_conversion_is_refused_and_nothing_is_spent(open_account, priced):
    """A Gaussian step beside a delta: no group privacy of approximate zCDP."""
    account, common = open_account(filter="zcdp"), opened(filter="zcdp")
    join(common, account, number=2)
    with pytest.raises(errors.UnsoundCombination, match="group privacy"):
        reserve(account, priced(gaussian=True, rho=0.001, delta=1e-9))
    assert spent(account) == spent(common) == (0, 0, 0)


SMALLER = "needs at least the project"
NO_DELTA, DELTA = MinibatchSgdEvent(1.0, 1), GaussianEvent(1.0, 20.0, delta=1e-9)
OTHER_DELTA = replace(DELTA, sigma=30.0)


def sampled(inner, rate=0.5) -> SecretSampleEvent:
    return SecretSampleEvent(inner, rate)


@pytest.mark.parametrize(("first", "second"), [(DELTA, OTHER_DELTA), (NO_DELTA, DELTA), (DELTA, NO_DELTA)])
def test_samples_with_a_delta_of_other_epsilons_are_refused_where_people_have_several_records(
    open_account, first, second
):
    account, common = open_account(epsilon_limit=3), opened(epsilon_limit=9)
    (quota,) = join(common, account, number=2)
    held = reserve(account, sampled(first))
    reserve(account, sampled(first))
    before = spent(account), spent(common)
    for ask in (
        lambda: reserve(account, sampled(second)),
        lambda: selectors.can_pay(account, [sampled(second)]),
        lambda: selectors.payments_left(account, sampled(second)),
    ):
        with pytest.raises(errors.UnsoundCombination, match=SMALLER):
            ask()
    assert (spent(account), spent(common)) == before
    ledger.void(reservation=held, reason="nothing was read")
    with pytest.raises(errors.UnsoundCombination, match=SMALLER):
        reserve(account, sampled(second))
    assert list(sharing.unrepeated(quota)) == []
    sound(account, common)


@pytest.mark.parametrize(
    ("number", "first", "second"),
    [
        pytest.param(2, sampled(NO_DELTA), sampled(MinibatchSgdEvent(9.0, 1)), id="without a delta"),
        pytest.param(1, sampled(DELTA), sampled(OTHER_DELTA), id="people of one record"),
        pytest.param(2, sampled(DELTA), sampled(DELTA), id="one epsilon"),
        pytest.param(2, sampled(DELTA, 0.1), sampled(OTHER_DELTA, 0.1), id="within the proof"),
    ],
)
def test_samples_whose_prices_add_up_are_charged(open_account, number, first, second):
    account, common = open_account(epsilon_limit=3), opened(epsilon_limit=9)
    join(common, account, number=number)
    reserve(account, first)
    reserve(account, second)
    sound(account, common)


def test_samples_that_were_given_back_or_are_of_another_project_hinder_none(open_account):
    account, other, common = open_account(), open_account(), opened()
    join(common, account, other, number=2)
    ledger.void(reservation=reserve(account, sampled(DELTA)), reason="nothing was read")
    reserve(account, sampled(OTHER_DELTA))
    reserve(other, sampled(DELTA))
    sound(account, other, common)


def test_a_past_of_samples_whose_sum_is_unproven_does_not_join(open_account):
    account, common = open_account(), opened()
    for one in (DELTA, OTHER_DELTA):
        reserve(account, sampled(one))
    with pytest.raises(errors.UnsoundCombination, match=SMALLER):
        join(common, account, number=2)
    join(common, account, number=1)


def test_the_audit_finds_samples_whose_sum_is_unproven(open_account):
    account = open_account()
    for one in (DELTA, OTHER_DELTA):
        reserve(account, sampled(one))
    join(opened(), account, number=1)
    hold_everything()
    with without_rules("privacy_budgetaccount"):
        BudgetAccount.objects.filter(pk=account.pk).update(records_per_person=2)
        hold_everything()
    problems = [problem for _, problem in sharing.unrepeated(selectors.quota_of(account))]
    assert [SMALLER in problem for problem in problems] == [True, True]


@pytest.mark.parametrize(
    ("number", "inner", "scopes", "said"),
    [
        (2, (DELTA, OTHER_DELTA), "aa", SMALLER),
        (1, (DELTA, OTHER_DELTA), "aa", ""),
        (2, (DELTA, OTHER_DELTA), "ab", ""),
        (2, (NO_DELTA, MinibatchSgdEvent(9.0, 1)), "aa", ""),
    ],
)
def test_the_auditor_of_a_population_refuses_samples_whose_sum_is_unproven(number, inner, scopes, said):
    people = [
        PeopleEvent(sampled(one), "contributor", number, scope, 2) for one, scope in zip(inner, scopes, strict=True)
    ]
    found = said_by_auditor(History([Step(event) for event in people], unit="contributor"))
    assert said in found if said else not found


def test_an_account_joins_once(open_account, population):
    account = open_account()
    join(population, account)
    with pytest.raises(errors.UnsoundCombination, match="already belongs to a population"):
        join(opened(), account)


def test_another_key_of_pseudonyms_is_another_population(open_account, population, settings):
    settings.PSEUDONYM_KEY = "another"
    with pytest.raises(errors.UnsoundCombination, match="another pseudonym key"):
        join(population, open_account())


def test_statements_of_a_reservation_outside_populations(open_account, priced, population):
    alone, joined = open_account(), open_account()
    join(population, joined)
    reserve(alone, priced(0.125))
    reserve(joined, priced(0.125))
    with CaptureQueriesContext(connection) as without:
        reserve(alone, priced(0.125))
    with CaptureQueriesContext(connection) as within:
        reserve(joined, priced(0.125))
    assert len(without) == STATEMENTS_ALONE
    assert len(within) == STATEMENTS_ALONE + 2


def test_the_audit_finds_what_a_population_was_not_charged(open_account, priced, population):
    account = open_account()
    (quota,) = join(population, account)
    hold_everything()
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE privacy_ledgerentry DISABLE TRIGGER privacy_entry_in_population")
        insert(account, epsilon_nano=1, event_json='{"kind": "random_choice", "version": 1}', mechanism="random_choice")
        hold_everything()
        cursor.execute("ALTER TABLE privacy_ledgerentry ENABLE ALWAYS TRIGGER privacy_entry_in_population")
    assert [problem for _, problem in sharing.unrepeated(quota)] == ["missing"]
    (verdict,) = audit_accounts(scope=population.scope, marks=site_counter().marks())
    assert verdict.differing


# What the database refuses, whoever writes.


COUNTED = '{"kind": "m", "unit": "contributor"}'


def insert(account: BudgetAccount, **fields: object) -> LedgerEntry:
    given = {
        "account_id": account.pk,
        "kind": "reserve",
        "mechanism": "m",
        "event_json": '{"kind": "m"}',
        "purpose": "p",
        "idempotency_key": uuid4(),
        **fields,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO privacy_ledgerentry ({', '.join(given)}) VALUES ({', '.join(['%s'] * len(given))})",
            list(given.values()),
        )
    return account.entries.latest("sequence")


def write(account: BudgetAccount, event, quota: BudgetAccount | None = None) -> None:
    entry = append(
        Draft(
            account=account,
            kind=EntryKind.RESERVE,
            idempotency_key=uuid4(),
            purpose="p",
            **asdict(price(account, event)),
        )
    )
    if quota is None:
        sharing.repeat_reservation(entry, event)
    else:
        sharing._repeat(quota, entry, event)


def joined(population: BudgetAccount, account: BudgetAccount, number: int) -> None:
    """Join as the database sees it, without what the service charges and refuses."""
    BudgetAccount.objects.filter(pk=account.pk).update(parent=population, records_per_person=number)


def test_a_project_cannot_pay_alone(open_account, population):
    account = open_account()
    join(population, account)
    hold_everything()
    refused_late("privacy_entry_in_population", lambda: insert(account, epsilon_nano=1))


def test_a_project_cannot_settle_alone(open_account, priced, population):
    account = open_account()
    join(population, account)
    held = reserve(account, priced(0.25))
    hold_everything()

    def void() -> None:
        insert(
            account,
            kind="void",
            mechanism="",
            purpose="",
            idempotency_key=None,
            parent_id=held.pk,
            reason="r",
            epsilon_nano=held.epsilon_nano,
            rho_nano=held.rho_nano,
        )

    refused_late("privacy_entry_in_population", void)


def test_a_population_cannot_settle_alone(open_account, priced, population):
    account = open_account()
    join(population, account)
    reserve(account, priced(0.25))
    hold_everything()
    held = selectors.last_entry(population)
    refused_late("privacy_population_repeats", lambda: ledger.void(reservation=held, reason="given back"))


def test_a_population_pays_for_nothing_else(population, priced):
    refused_late("privacy_population_repeats", lambda: insert(population, epsilon_nano=1, event_json=COUNTED))


@pytest.mark.parametrize(
    ("number", "cheaper"),
    [(1, {"epsilon_nano": -1}), (2, {"epsilon_nano": -3}), (2, {"rho_nano": -9}), (2, {"delta_atto": -4})],
)
def test_a_population_is_not_charged_less(open_account, priced, population, monkeypatch, number, cheaper):
    account = open_account()
    join(population, account, number=number)
    hold_everything()
    right = sharing.append

    def too_cheap(draft):
        return right(replace(draft, **{name: getattr(draft, name) + less for name, less in cheaper.items()}))

    monkeypatch.setattr(sharing, "append", too_cheap)
    delta = 1e-9 if "delta_atto" in cheaper else 0.0
    refused_late("privacy_population_price", lambda: write(account, priced(0.25, delta=delta)))


def test_the_declared_number_is_the_one_that_is_charged(open_account, priced, population):
    account = open_account()
    (quota,) = join(population, account, number=3)
    hold_everything()
    quota.records_per_person = 1

    refused_late("privacy_population_repeats", lambda: write(account, priced(0.25), quota))


def test_the_database_refuses_overspend_of_the_population(open_account, priced):
    account, common = open_account(), opened(epsilon_limit=0.5)
    join(common, account)
    reserve(account, priced(0.5))
    hold_everything()
    with pytest.raises(sharing.SharedRefusal) as caught, transaction.atomic():
        write(account, priced(0.25))
    assert broken_rule(caught.value.__cause__) == "privacy_ledger_within_limit"
    refused_late("privacy_entry_in_population", lambda: insert(account, epsilon_nano=250_000_000))


def test_a_past_that_is_not_charged(open_account, priced, population):
    account = open_account()
    reserve(account, priced(0.25))
    hold_everything()
    refused_late("privacy_quota_past", lambda: joined(population, account, 1))


@pytest.mark.parametrize(
    ("account", "common", "number", "rule"),
    [
        ({}, {}, 0, "privacy_account_declared"),
        ({}, {}, 10_001, "privacy_account_declared"),
        ({"unit": "answer"}, {}, 1, "privacy_quota_unit"),
        ({"unit": "contributor"}, {"unit": "record"}, 1, "privacy_quota_unit"),
        ({"unit": "contributor"}, {}, 2, "privacy_quota_unit"),
        ({"adjacency": "add_remove"}, {}, 1, "privacy_quota_neighbours"),
        ({"filter": "zcdp"}, {}, 1, "privacy_quota_filter"),
    ],
)
def test_a_quota_without_conversion(open_account, account, common, number, rule):
    member, population = open_account(**account), opened(**common)
    refused_late(rule, lambda: joined(population, member, number))


def test_a_population_is_no_part_of_another(population):
    inner = opened()
    refused_late("privacy_quota_of_project", lambda: joined(population, inner, 1))


def test_a_project_is_no_population(open_account):
    refused_late("privacy_quota_of_project", lambda: joined(open_account(), open_account(), 1))


def test_a_population_begins_with_its_own_account(open_account):
    account = open_account()
    with as_owner():
        refused_late(
            "privacy_account_terms_fixed",
            lambda: BudgetAccount.objects.filter(pk=account.pk).update(key_fingerprint="0" * 32),
        )


@pytest.mark.parametrize("wrong", [{"key_fingerprint": "x"}, {"unit": "answer"}, {"scope": "project:x"}])
def test_a_population_has_people_and_their_key(db, wrong):
    given = {"scope": "population:x", "label": "x", "unit": "record", "filter": "pure", "key_fingerprint": "0" * 32}
    refused_late("privacy_account_population", lambda: BudgetAccount.objects.create(**given | wrong))


@pytest.mark.parametrize("role", ["origin", "replica"])
@pytest.mark.parametrize("change", [{"parent": None, "records_per_person": 1}, {"records_per_person": 2}])
def test_nobody_leaves(open_account, population, change, role):
    account = open_account()
    join(population, account)
    hold_everything()
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL session_replication_role = {role}")
        refused_late(
            "privacy_account_terms_fixed", lambda: BudgetAccount.objects.filter(pk=account.pk).update(**change)
        )
        cursor.execute("SET LOCAL session_replication_role = origin")


def test_a_session_that_poses_as_a_replica_pays_in_both(open_account, population):
    account = open_account()
    join(population, account)
    hold_everything()
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        refused_late("privacy_entry_in_population", lambda: insert(account, epsilon_nano=1))
        cursor.execute("SET LOCAL session_replication_role = origin")


def test_fractions_and_decimals_are_limits(db):
    assert opened(epsilon_limit=Decimal("0.3")).epsilon_limit_nano == 300_000_000
    assert opened(epsilon_limit=Fraction(1, 4)).epsilon_limit_nano == 250_000_000
