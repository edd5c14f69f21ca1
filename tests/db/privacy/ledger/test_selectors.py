from datetime import timedelta
from uuid import uuid4

import pytest

from privacy.accounting.composition import zcdp_epsilon
from privacy.errors import UnsoundCombination
from privacy.ledger import selectors
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount

DIGEST = "ab" * 32


def reserve(account, event, **given):
    return ledger.reserve(account=account, event=event, **{"purpose": "a test", "key": uuid4()} | given)


def test_an_account_without_entries_promises_nothing(db):
    now = selectors.guarantee(BudgetAccount.objects.create(scope="s", label="l", unit="record", filter="pure"))
    assert (now.epsilon_limit, now.epsilon_left, now.sequence, now.chain_head) == (0.0, 0.0, 0, "0" * 64)


def test_a_zcdp_guarantee_converts_what_is_spent(open_account, priced):
    account = open_account(filter="zcdp", epsilon_limit=2.0)
    settled = reserve(account, priced(0.0, 1e-8, rho=0.01))
    ledger.commit(reservation=settled, output_digest=DIGEST)
    reserve(account, priced(0.0, rho=0.02))
    now = selectors.guarantee(account)
    assert now.epsilon_spent == pytest.approx(zcdp_epsilon(0.03, 5e-7), abs=1e-6)
    assert now.epsilon_reserved == pytest.approx(now.epsilon_spent - zcdp_epsilon(0.01, 5e-7), abs=1e-6)
    assert now.delta_spent == pytest.approx(1e-8 + 5e-7)
    assert now.epsilon_left == pytest.approx(2.0 - now.epsilon_spent)
    assert now.delta_left == pytest.approx(5e-7 - 1e-8)


def test_a_statement_folds_settlements_into_one_line(account, priced):
    committed = reserve(account, priced(0.125), subject="round:1", actor="ada")
    ledger.commit(reservation=committed, output_digest=DIGEST)
    ledger.record_post_processing(
        account=account, parent=committed, operation="rank", purpose="x", output_digest=DIGEST, key=uuid4()
    )
    ledger.void(reservation=reserve(account, priced(0.125)), reason="no row was read")
    reserve(account, priced(0.125))
    ledger.charge_stale(older_than=timedelta(0))
    reserve(account, priced(0.125))
    lines = list(selectors.statement(account))
    assert [line.state for line in lines] == ["reserve", "charge", "void", "post_processing", "commit", "grant"]
    assert [line.descends_from for line in lines] == [None, None, None, committed.sequence, None, None]
    assert (lines[4].settled_digest, lines[4].actor, lines[4].subject) == (DIGEST, "ada", "round:1")
    assert lines[4].settled_at == committed.created_at


def test_a_statement_takes_one_query(account, priced, django_assert_num_queries):
    for _ in range(3):
        reserve(account, priced(0.125))
    with django_assert_num_queries(1):
        assert len(selectors.statement(account)) == 4


def test_totals_leave_voided_reservations_out(account, priced):
    reserve(account, priced(0.5), subject="round:1", actor="ada")
    reserve(account, priced(0.125), subject="round:2", actor="bob")
    reserve(account, priced(0.125, 1e-7), subject="round:2", actor="ada")
    ledger.void(reservation=reserve(account, priced(0.25), subject="round:3"), reason="no row was read")
    by_subject = selectors.spending_by_subject(account)
    assert [(each.name, each.operations, each.epsilon_nano) for each in by_subject] == [
        ("round:2", 2, 250_000_000),
        ("round:1", 1, 500_000_000),
    ]
    assert [each.share for each in by_subject] == [1.0, pytest.approx(2 / 3)]
    assert {each.name: each.epsilon_nano for each in selectors.spending_by_person(account)} == {
        "ada": 625_000_000,
        "bob": 125_000_000,
    }
    (mechanism,) = selectors.spending_by_mechanism(account)
    assert (mechanism.name, mechanism.operations) == ("priced_for_tests", 3)


@pytest.mark.parametrize(
    ("event", "times"),
    [({"epsilon": 0.25}, 3), ({"epsilon": 0.3}, 2), ({"delta": 6e-7}, 1), ({"epsilon": 2.0}, 0), ({}, None)],
)
def test_a_forecast_is_what_can_really_be_reserved(account, priced, event, times):
    reserve(account, priced(0.125))
    assert selectors.payments_left(account, priced(**event)) == times
    if times is not None:
        for _ in range(times):
            reserve(account, priced(**event))
        assert selectors.payments_left(account, priced(**event)) == 0


def test_a_forecast_in_rho(open_account, priced):
    account = open_account(filter="zcdp")
    assert selectors.payments_left(account, priced(gaussian=True, rho=0.005)) == account.rho_limit_nano // 5_000_000


def test_a_forecast_of_what_has_no_proof_is_refused(account, priced):
    with pytest.raises(UnsoundCombination):
        selectors.payments_left(account, priced(gaussian=True, rho=0.1))


def test_accounts_with_open_reservations(open_account, priced):
    idle, busy, settled = open_account(), open_account(), open_account()
    reserve(busy, priced(0.0))
    ledger.void(reservation=reserve(settled, priced(0.0)), reason="no row was read")
    assert list(selectors.accounts_with_open_reservations()) == [busy]
    assert idle != busy


def test_a_line_descends_from_a_line_that_is_shown(account, priced):
    """The settlement an output came from is folded into its operation, so the statement names the operation."""
    held = reserve(account, priced(0.125))
    gate = ledger.commit(reservation=held, output_digest=DIGEST)
    ledger.record_post_processing(
        account=account, parent=gate, operation="rank", purpose="x", output_digest=DIGEST, key=uuid4()
    )
    newest = selectors.statement(account)[0]
    assert newest.descends_from == held.sequence
    assert newest.descends_from in {line.sequence for line in selectors.statement(account)}
