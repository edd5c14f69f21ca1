from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from privacy import errors
from privacy.accounting.events import TopCEvent
from privacy.ledger import entries, selectors, terms
from privacy.ledger import services as ledger
from privacy.ledger.auditor.chain import HASHED_FIELDS, entry_hash
from privacy.ledger.models import LedgerEntry

DIGEST = "ab" * 32
NANO = 1e-9


def reserve(account, event, **given) -> LedgerEntry:
    return ledger.reserve(account=account, event=event, **{"purpose": "a test", "key": uuid4()} | given)


def test_a_reservation_counts_as_spent_and_a_commit_keeps_it(account, priced):
    reservation = reserve(account, priced(0.25, 1e-7), subject="round:1", actor="bob")
    now = selectors.guarantee(account)
    assert (now.epsilon_spent, now.epsilon_reserved, now.epsilon_left) == (0.25, 0.25, 0.75)
    assert (now.open_reservations, now.sequence) == (1, 2)
    assert now.delta_spent == pytest.approx(1e-7)

    committed = ledger.commit(reservation=reservation, output_digest=DIGEST)
    now = selectors.guarantee(account)
    assert (now.epsilon_spent, now.epsilon_reserved, now.open_reservations) == (0.25, 0.0, 0)
    assert (committed.parent_id, committed.subject, committed.mechanism) == (
        reservation.pk,
        "round:1",
        "priced_for_tests",
    )
    assert now.chain_head == committed.hash


def test_a_void_gives_back_what_was_reserved(account, priced):
    reservation = reserve(account, priced(1.0))
    ledger.void(reservation=reservation, reason="no row was read")
    assert selectors.guarantee(account).epsilon_left == 1.0
    reserve(account, priced(1.0))


def test_a_stale_reservation_is_charged_and_others_are_left(open_account, priced):
    account, other = open_account(), open_account()
    stale, settled = reserve(account, priced(0.5)), reserve(account, priced(0.125))
    ledger.commit(reservation=settled, output_digest=DIGEST)
    reserve(other, priced(0.125))
    assert ledger.charge_stale(older_than=timedelta(hours=1)) == 0
    assert ledger.charge_stale(older_than=timedelta(0)) == 2
    assert ledger.charge_stale(older_than=timedelta(0)) == 0
    now = selectors.guarantee(account)
    assert (now.epsilon_spent, now.epsilon_reserved, now.open_reservations) == (0.625, 0.0, 0)
    with pytest.raises(errors.AlreadySettled):
        ledger.commit(reservation=stale, output_digest=DIGEST)


@pytest.mark.parametrize("first", ["commit", "void", "charge"])
def test_a_reservation_is_settled_once(account, priced, first):
    reservation = reserve(account, priced(0.5))
    if first == "commit":
        ledger.commit(reservation=reservation, output_digest=DIGEST)
    elif first == "void":
        ledger.void(reservation=reservation, reason="no row was read")
    else:
        ledger.charge_stale(older_than=timedelta(0))
    with pytest.raises(errors.AlreadySettled):
        ledger.commit(reservation=reservation, output_digest=DIGEST)
    with pytest.raises(errors.AlreadySettled):
        ledger.void(reservation=reservation, reason="again")


def test_the_same_key_pays_once(account, priced):
    key = uuid4()
    first = reserve(account, priced(0.5), key=key)
    again = reserve(account, priced(0.5), key=key)
    assert again.pk == first.pk
    assert selectors.guarantee(account).epsilon_spent == 0.5


def test_the_key_of_what_was_given_back_holds_nothing(account, priced):
    key = uuid4()
    reservation = reserve(account, priced(0.5), key=key)
    ledger.void(reservation=reservation, reason="no row was read")
    with pytest.raises(errors.AlreadySettled, match=str(reservation.pk)):
        reserve(account, priced(0.5), key=key)
    assert selectors.guarantee(account).epsilon_spent == 0.0


def test_the_same_key_is_found_when_the_budget_is_gone(account, priced):
    key = uuid4()
    first = reserve(account, priced(0.75), key=key)
    assert reserve(account, priced(0.75), key=key).pk == first.pk


@pytest.mark.parametrize("changed", [{"event": 0.25}, {"purpose": "another"}, {"subject": "round:9"}])
def test_a_key_cannot_stand_for_another_operation(account, priced, changed):
    key = uuid4()
    reserve(account, priced(0.5), key=key)
    event = priced(changed.pop("event", 0.5))
    with pytest.raises(errors.KeyReused, match=str(key)):
        reserve(account, event, key=key, **changed)


def test_a_key_cannot_stand_for_two_accounts(open_account, priced):
    key = uuid4()
    reserve(open_account(), priced(0.5), key=key)
    with pytest.raises(errors.KeyReused, match="account_id"):
        reserve(open_account(), priced(0.5), key=key)


def test_the_pure_filter_admits_its_limit_and_not_a_nano_more(account, priced):
    reserve(account, priced(0.5))
    reserve(account, priced(0.5))
    assert selectors.guarantee(account).epsilon_left == 0.0
    # Half a unit is rounded up to one; the float of a whole one lies above it and would be charged two.
    with pytest.raises(errors.BudgetExceeded):
        reserve(account, priced(0.5 * NANO))
    reserve(account, priced(0.0))


def test_the_pure_filter_admits_its_delta_and_not_an_atto_more(open_account, priced):
    account = open_account(delta_limit=2.0**-20)
    left = account.delta_sum_limit_atto - reserve(account, priced(0.0, 2.0**-21)).delta_spent_atto
    # Half a unit more is rounded up to a whole one.
    with pytest.raises(errors.BudgetExceeded):
        reserve(account, priced(0.0, (left + 0.5) * 1e-18))
    assert reserve(account, priced(0.0, (left - 0.5) * 1e-18)).delta_spent_atto == account.delta_sum_limit_atto


def test_the_zcdp_filter_admits_its_rho_and_not_a_nano_more(open_account, priced):
    account = open_account(filter="zcdp")
    limit = account.rho_limit_nano
    reserve(account, priced(gaussian=True, rho=(limit - 1) * NANO * (1 - 1e-15)))
    with pytest.raises(errors.BudgetExceeded, match="rho="):
        reserve(account, priced(gaussian=True, rho=1.5 * NANO))
    reserve(account, priced(gaussian=True, rho=0.5 * NANO))
    now = selectors.guarantee(account)
    assert now.rho_spent == pytest.approx(limit * NANO)
    assert 0.999 < now.epsilon_spent <= now.epsilon_limit


def test_the_zcdp_filter_keeps_part_of_delta_for_the_conversion(open_account, priced):
    account = open_account(filter="zcdp", delta_limit=2.0**-20, delta_share=0.25)
    assert account.delta_sum_limit_atto == account.delta_limit_atto // 4
    reserve(account, priced(0.0, 2.0**-22 - 1e-18))
    with pytest.raises(errors.BudgetExceeded):
        reserve(account, priced(0.0, 2.0**-30))
    assert selectors.guarantee(account).delta_spent <= account.delta_limit_atto * 1e-18


def test_a_refusal_says_what_spent_most(account, priced):
    reserve(account, priced(0.75), subject="round:1")
    voided = reserve(account, priced(0.25))
    ledger.void(reservation=voided, reason="no row was read")
    with pytest.raises(errors.BudgetExceeded, match="priced_for_tests 100% in 1") as refusal:
        reserve(account, priced(0.5))
    (spending,) = refusal.value.top_spenders
    assert (spending.name, spending.operations, spending.epsilon_nano) == ("priced_for_tests", 1, 750_000_000)


def test_reserve_refuses_a_transaction_that_could_be_rolled_back(transactional_db, open_account, priced):
    account = open_account()
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        reserve(account, priced(0.5))


def test_a_reservation_is_on_disk_before_it_returns_whatever_the_server_spares(
    transactional_db, open_account, priced, monkeypatch
):
    account = open_account()
    reached = {}

    def position(step: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, pg_current_wal_flush_lsn() - '0/0'::pg_lsn"
            )
            reached[step] = cursor.fetchone()

    monkeypatch.setattr(entries, "fault_point", position)
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
    try:
        ledger.reserve(account=account, event=priced(0.1), purpose="a test", key=uuid4())
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            assert cursor.fetchone() == ("off",)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET synchronous_commit")
    written, _flushed = reached["before_flush"]
    _written, flushed = reached["before_counter"]
    assert flushed >= written


def test_commit_needs_the_transaction_of_the_output(transactional_db, open_account, priced):
    account = open_account()
    reservation = reserve(account, priced(0.5))
    with pytest.raises(transaction.TransactionManagementError):
        ledger.commit(reservation=reservation, output_digest=DIGEST)
    with transaction.atomic():
        ledger.commit(reservation=reservation, output_digest=DIGEST)
        transaction.set_rollback(True)  # the output could not be stored
    assert selectors.guarantee(account).open_reservations == 1


@pytest.mark.parametrize(
    ("terms_of_account", "event", "rule"),
    [
        ({"adjacency": "add_remove"}, {"epsilon": 0.1}, "add_remove"),
        ({}, {"gaussian": True, "rho": 0.1}, "no finite epsilon"),
        ({"filter": "zcdp"}, {"gaussian": True}, "no finite rho"),
        ({"unit": "contributor"}, {"epsilon": 0.1}, "one unit of privacy"),
        ({}, {"epsilon": 0.1, "unit": "contributor"}, "one unit of privacy"),
        ({}, {"series": "continued"}, "continues a series"),
    ],
)
def test_what_has_no_proof_is_refused_by_rule(open_account, priced, terms_of_account, event, rule):
    account = open_account(**terms_of_account)
    with pytest.raises(errors.UnsoundCombination, match=rule):
        reserve(account, priced(**event))
    assert selectors.guarantee(account).sequence == 1


def test_what_costs_nothing_is_free_under_every_unit(open_account, priced):
    reserve(open_account(unit="contributor"), priced(0.0))


def test_a_series_continues_only_from_a_standing_round(account, priced):
    opened = reserve(account, priced(0.25, series="opened"))
    second = reserve(account, priced(0.0625, series="continued"))
    third = reserve(account, priced(0.0625, series="continued"))
    assert (second.parent_id, third.parent_id) == (opened.pk, second.pk)
    with pytest.raises(errors.UnsoundCombination, match="still stands"):
        ledger.void(reservation=opened, reason="no row was read")
    for reservation in (third, second, opened):
        ledger.void(reservation=reservation, reason="no row was read")
    with pytest.raises(errors.UnsoundCombination, match="continues a series"):
        reserve(account, priced(0.0625, series="continued"))


def test_a_top_c_round_leans_only_on_a_scale_that_covers_it(account):
    def batch(series, scale):
        return TopCEvent(pool_size=1000, picks=5, scale=scale, series=series)

    with pytest.raises(errors.UnsoundCombination, match="continues a series"):
        reserve(account, batch("continued", 0.05))
    opened = reserve(account, batch("opened", 0.05))
    with pytest.raises(errors.UnsoundCombination, match=r"scale must be at most 0\.05"):
        reserve(account, batch("continued", 0.0625))
    ledger.commit(reservation=opened, output_digest=DIGEST)
    continued = reserve(account, batch("continued", 0.03125))
    assert continued.parent_id == opened.pk
    assert continued.epsilon_nano < opened.epsilon_nano


def test_post_processing_is_free_and_names_its_ancestor(account, priced):
    reservation = reserve(account, priced(0.5))
    asked = {"account": account, "parent": reservation, "operation": "rank", "purpose": "questions"}
    with pytest.raises(errors.NotCommitted):
        ledger.record_post_processing(**asked, output_digest=DIGEST, key=uuid4())
    ledger.commit(reservation=reservation, output_digest=DIGEST)
    key = uuid4()
    ranked = ledger.record_post_processing(**asked, output_digest=DIGEST, key=key)
    assert ledger.record_post_processing(**asked, output_digest=DIGEST, key=key).pk == ranked.pk
    with pytest.raises(errors.KeyReused, match="output_digest"):
        ledger.record_post_processing(**asked, output_digest="cd" * 32, key=key)
    trained = ledger.record_post_processing(**asked | {"parent": ranked}, output_digest=DIGEST, key=uuid4())
    assert trained.parent_id == ranked.pk
    assert selectors.guarantee(account).epsilon_spent == 0.5


@pytest.mark.parametrize("settle", ["void", "charge"])
def test_nothing_descends_from_what_gave_no_output(account, priced, settle):
    reservation = reserve(account, priced(0.5))
    if settle == "void":
        ledger.void(reservation=reservation, reason="no row was read")
    else:
        ledger.charge_stale(older_than=timedelta(0))
    with pytest.raises(errors.NotCommitted):
        ledger.record_post_processing(
            account=account, parent=reservation, operation="rank", purpose="x", output_digest=DIGEST, key=uuid4()
        )


def test_a_limit_can_rise_and_fall_to_what_is_spent(account, priced):
    reserve(account, priced(0.5))
    entry = ledger.change_account_limits(
        account=account, epsilon_limit=0.5, delta_limit=0, actor="ada", reason="enough"
    )
    assert (account.epsilon_limit_nano, account.delta_limit_atto) == (500_000_000, 0)
    assert (entry.actor, entry.reason) == ("ada", "enough")
    with pytest.raises(errors.BudgetExceeded):
        reserve(account, priced(NANO))
    with pytest.raises(errors.BudgetExceeded, match="below the amount spent"):
        ledger.change_account_limits(account=account, epsilon_limit=0.499, delta_limit=0, actor="ada", reason="less")
    ledger.change_account_limits(account=account, epsilon_limit=2, delta_limit=0, actor="ada", reason="more")
    reserve(account, priced(1.5))


def test_a_zcdp_limit_keeps_its_share_of_delta(open_account):
    account = open_account(filter="zcdp", delta_share=Decimal("0.1"))
    before = account.rho_limit_nano
    ledger.change_account_limits(account=account, epsilon_limit=2.0, delta_limit=2e-6, actor="ada", reason="more")
    assert terms.delta_share(account) == Decimal("0.1")
    assert account.rho_limit_nano > before


def test_a_limit_means_the_decimal_somebody_typed(open_account):
    assert open_account(epsilon_limit=0.3, delta_limit=1e-7).epsilon_limit_nano == 300_000_000
    assert open_account(epsilon_limit=Decimal("0.1"), delta_limit=1e-7).delta_limit_atto == 10**11


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta_limit": 1.0}, "delta limit must be < 1"),
        ({"epsilon_limit": -1.0}, "must be >= 0"),
        ({"epsilon_limit": float("nan")}, "must be"),
        ({"filter": "zcdp", "delta_limit": 0.0}, "delta limit > 0"),
        ({"filter": "zcdp", "delta_share": 1.0}, "delta share"),
    ],
)
def test_limits_out_of_range_are_refused(open_account, given, message):
    with pytest.raises(ValueError, match=message):
        open_account(**given)


def test_a_scope_has_one_account(open_account):
    open_account(scope="project:x:pool")
    with pytest.raises(IntegrityError), transaction.atomic():
        open_account(scope="project:x:pool")


def test_entries_are_chained_by_hashes_python_recomputes(account, priced):
    reservation = reserve(account, priced(0.1, 1e-7), purpose='quotes " \\ \n and é 你 \x7f', actor="ada")
    ledger.commit(reservation=reservation, output_digest=DIGEST)
    head = "0" * 64
    for entry in account.entries.order_by("sequence"):
        assert entry.previous_hash == head
        assert entry.hash == entry_hash({name: getattr(entry, name) for name in HASHED_FIELDS})
        head = entry.hash


def test_entries_tell_who_and_when(account, priced, django_user_model):
    person = django_user_model.objects.create_user("grace")
    entry = reserve(account, priced(0.1), actor=person)
    person.delete()
    entry.refresh_from_db()
    assert entry.actor == "grace"
    assert str(entry) == "#2 reserved"
    assert entry.event["epsilon"] == 0.1
