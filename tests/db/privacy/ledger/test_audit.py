import io
import json
from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from privacy.accounting.events import GaussianEvent, TopCEvent
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.auditor.chain import HASHED_FIELDS, entry_hash
from privacy.ledger.marks import AccountIdentity, Mark
from privacy.ledger.models import LedgerEntry
from tests.owning import as_owner

DIGEST = "ab" * 32


@pytest.fixture
def story(account, priced):
    def reserve(event):
        return ledger.reserve(account=account, event=event, purpose="a test", key=uuid4(), subject="round:1")

    opened = reserve(TopCEvent(pool_size=1000, picks=5, scale=0.05, series="opened"))
    ledger.commit(reservation=opened, output_digest=DIGEST)
    continued = reserve(TopCEvent(pool_size=1000, picks=5, scale=0.05, series="continued"))
    ledger.void(reservation=continued, reason="no row was read")
    asked = {"operation": "rank", "purpose": "questions", "output_digest": DIGEST}
    ledger.record_post_processing(account=account, parent=opened, key=uuid4(), **asked)
    reserve(priced(0.125, 1e-7))
    ledger.charge_stale(older_than=timedelta(0))
    ledger.change_account_limits(account=account, epsilon_limit=2, delta_limit=2e-6, actor="ada", reason="more")
    reserve(priced(0.125))
    return account


def audit(scope=None, marks=None):
    return list(audit_accounts(scope=scope, marks=marks))


def found(account) -> set[tuple[int, str]]:
    (verdict,) = audit(account.scope)
    assert verdict.differing == len(verdict.differences)
    return {(difference.sequence, difference.field) for difference in verdict.differences}


class rules_off:  # noqa: N801  # reads as a sentence
    """Do what only the owner of the tables can: take the rules down."""

    def __enter__(self):
        self.owning = as_owner()
        self.owning.__enter__()
        self.cursor = connection.cursor()
        self.cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in ("privacy_ledgerentry", "privacy_budgetaccount"):
            self.cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        return self.cursor

    def __exit__(self, *error):
        self.cursor.close()
        self.owning.__exit__(*error)


def rechain(account) -> None:
    head = "0" * 64
    with rules_off() as cursor:
        for entry in account.entries.order_by("sequence"):
            entry.previous_hash = head
            head = entry_hash({name: getattr(entry, name) for name in HASHED_FIELDS})
            cursor.execute(
                "UPDATE privacy_ledgerentry SET previous_hash = %s, hash = %s WHERE id = %s",
                [entry.previous_hash, head, entry.pk],
            )


def test_an_honest_ledger_is_sound(story, open_account):
    zcdp = open_account(filter="zcdp")
    event = GaussianEvent(sensitivity_l2=1.0, sigma=50.0)
    ledger.reserve(account=zcdp, event=event, purpose="a test", key=uuid4())
    verdicts = audit()
    assert [verdict.differing for verdict in verdicts] == [0, 0]
    assert verdicts[0].entries == 10
    assert verdicts[0].chain_head == story.entries.latest("sequence").hash


HASHED_CHANGES = {
    "kind": "'charge'",
    "mechanism": "'other'",
    "subject": "'round:2'",
    "purpose": "'other'",
    "event_json": "event_json || ' '",
    "epsilon_nano": "epsilon_nano + 1",
    "delta_atto": "delta_atto + 1",
    "rho_nano": "rho_nano + 1",
    "mi_nano": "mi_nano + 1",
    "epsilon_spent_nano": "epsilon_spent_nano - 1",
    "delta_spent_atto": "delta_spent_atto + 1",
    "rho_spent_nano": "rho_spent_nano + 1",
    "mi_spent_nano": "mi_spent_nano + 1",
    "epsilon_reserved_nano": "epsilon_reserved_nano + 1",
    "delta_reserved_atto": "delta_reserved_atto + 1",
    "rho_reserved_nano": "rho_reserved_nano + 1",
    "mi_reserved_nano": "mi_reserved_nano + 1",
    "open_reservations": "open_reservations + 1",
    "idempotency_key": "gen_random_uuid()",
    "output_digest": "repeat('cd', 32)",
    "actor": "'mallory'",
    "reason": "'other'",
    "created_at": "created_at - interval '1 microsecond'",
    "previous_hash": "repeat('f', 64)",
}


def test_every_hashed_field_is_tried():
    assert set(HASHED_FIELDS) - set(HASHED_CHANGES) == {"id", "account_id", "sequence", "parent_id"}


@pytest.mark.parametrize("field", HASHED_CHANGES)
def test_a_changed_field_breaks_its_hash(story, field):
    # The commit of the story; a reservation and a settlement may not have all fields, so the constraints go too.
    with rules_off() as cursor:
        for constraint in LedgerEntry._meta.constraints:
            if constraint.name.startswith("privacy_entry_") and constraint.name != "privacy_entry_sequence":
                cursor.execute(f"ALTER TABLE privacy_ledgerentry DROP CONSTRAINT IF EXISTS {constraint.name}")
        cursor.execute(
            f"UPDATE privacy_ledgerentry SET {field} = {HASHED_CHANGES[field]} WHERE account_id = %s AND sequence = 3",
            [story.pk],
        )
    assert (3, "hash") in found(story)


@pytest.mark.parametrize(
    ("change", "sequence", "expected"),
    [
        ("epsilon_nano = epsilon_nano - 1", 2, {(2, "epsilon_nano"), (3, "epsilon_nano"), (2, "epsilon_spent_nano")}),
        ("delta_atto = delta_atto - 1", 7, {(7, "delta_atto"), (8, "delta_atto"), (7, "delta_spent_atto")}),
        ("rho_spent_nano = rho_spent_nano - 1", 7, {(7, "rho_spent_nano"), (8, "rho_spent_nano")}),
        ("epsilon_reserved_nano = epsilon_reserved_nano + 1", 10, {(10, "epsilon_reserved_nano")}),
        ("mechanism = 'other'", 7, {(7, "mechanism")}),
        ("kind = 'void', output_digest = '', reason = 'r'", 3, {(3, "epsilon_spent_nano"), (6, "parent")}),
        ("kind = 'charge', output_digest = '', reason = 'r'", 3, {(6, "parent")}),
        ("parent_id = NULL", 4, {(4, "parent")}),
    ],
)
def test_a_forger_who_chains_again_is_found_by_the_numbers(story, change, sequence, expected):
    with rules_off() as cursor:
        cursor.execute(
            f"UPDATE privacy_ledgerentry SET {change} WHERE account_id = %s AND sequence = %s", [story.pk, sequence]
        )
    rechain(story)
    assert expected <= found(story)


@pytest.mark.parametrize("event", ['{"kind": "unheard_of"}', "[]", "{}"])
def test_an_event_nobody_can_price_is_found(story, event):
    with rules_off() as cursor:
        cursor.execute(
            "UPDATE privacy_ledgerentry SET event_json = %s WHERE account_id = %s AND sequence = 7", [event, story.pk]
        )
    rechain(story)
    assert found(story) == {(7, "event_json")}


def test_a_cheaper_event_than_was_charged_is_found(story):
    with rules_off() as cursor:
        cursor.execute(
            "UPDATE privacy_ledgerentry SET event_json = replace(event_json, '0.125', '0.25') "
            "WHERE account_id = %s AND sequence = 7",
            [story.pk],
        )
    rechain(story)
    assert found(story) == {(7, "epsilon_nano"), (7, "rho_nano")}


def test_a_missing_entry_is_found(story):
    with rules_off() as cursor:
        cursor.execute("DELETE FROM privacy_ledgerentry WHERE account_id = %s AND sequence = 9", [story.pk])
    assert {(10, "sequence"), (10, "previous_hash"), (0, "epsilon_limit_nano")} <= found(story)


def test_a_limit_changed_by_hand_is_found(story):
    with rules_off() as cursor:
        cursor.execute("UPDATE privacy_budgetaccount SET epsilon_limit_nano = 9 WHERE id = %s", [story.pk])
    assert found(story) == {(0, "epsilon_limit_nano")}


def test_terms_changed_by_hand_are_found(story):
    with rules_off() as cursor:
        cursor.execute("UPDATE privacy_budgetaccount SET adjacency = 'replace' WHERE id = %s", [story.pk])
    assert found(story) == {(1, "event_json adjacency"), (9, "event_json adjacency")}


def test_a_rho_that_does_not_convert_is_found(open_account):
    account = open_account(filter="zcdp")
    with rules_off() as cursor:
        cursor.execute(
            "UPDATE privacy_budgetaccount SET rho_limit_nano = rho_limit_nano + 1 WHERE id = %s", [account.pk]
        )
        raised = account.rho_limit_nano + 1
        cursor.execute(
            "UPDATE privacy_ledgerentry SET event_json = replace(event_json, %s, %s) WHERE account_id = %s",
            [f'"rho_limit_nano": {raised - 1}', f'"rho_limit_nano": {raised}', account.pk],
        )
    rechain(account)
    assert found(account) == {(1, "event_json rho_limit_nano")}


def test_an_overspend_is_found(story):
    with rules_off() as cursor:
        cursor.execute(
            "UPDATE privacy_ledgerentry SET event_json = replace(event_json, '2000000000', '100') "
            "WHERE account_id = %s AND sequence = 9",
            [story.pk],
        )
    rechain(story)
    assert {(9, "epsilon_spent_nano"), (10, "epsilon_spent_nano")} <= found(story)


def test_a_void_under_a_standing_series_is_found(account):
    def reserve(series):
        event = TopCEvent(pool_size=1000, picks=5, scale=0.05, series=series)
        return ledger.reserve(account=account, event=event, purpose="a test", key=uuid4())

    opened, _ = reserve("opened"), reserve("continued")
    with rules_off() as cursor:
        cursor.execute(
            "INSERT INTO privacy_ledgerentry (account_id, sequence, kind, parent_id, epsilon_nano, rho_nano, reason) "
            "VALUES (%s, 4, 'void', %s, %s, %s, 'r')",
            [account.pk, opened.pk, opened.epsilon_nano, opened.rho_nano],
        )
    rechain(account)
    assert (4, "kind") in found(account)


def test_an_older_copy_of_the_database_is_found(story):
    identity = AccountIdentity(story.scope, story.created_at)
    head = story.entries.latest("sequence")
    assert not audit(marks={identity: Mark(head.sequence, head.hash)})[0].differing
    assert not audit(marks={identity: Mark(2, story.entries.get(sequence=2).hash)})[0].differing
    ahead = audit(marks={identity: Mark(11, "f" * 64)})[0]
    assert [(each.sequence, each.field) for each in ahead.differences] == [(10, "last entry")]
    forked = audit(marks={identity: Mark(5, "f" * 64)})[0]
    assert [(each.sequence, each.field) for each in forked.differences] == [
        (5, "hash in the counter outside the database")
    ]
    lost = audit(marks={AccountIdentity("gone", story.created_at): Mark(5, "f" * 64)})[1]
    assert (lost.scope, [each.field for each in lost.differences]) == ("gone", ["account"])


def test_the_command_prints_a_verdict_for_each_account(story, open_account):
    open_account()
    printed = io.StringIO()
    call_command("audit_ledger", stdout=printed)
    assert printed.getvalue().splitlines()[0].startswith(f"{story.scope}: sound, 10 entries, head ")
    assert len(printed.getvalue().splitlines()) == 3
    assert printed.getvalue().splitlines()[2].startswith("counter outside the database: sound")


def test_the_command_fails_and_names_entry_and_field(story):
    with rules_off() as cursor:
        cursor.execute("UPDATE privacy_ledgerentry SET purpose = 'x' WHERE sequence = 2", [])
    printed = io.StringIO()
    with pytest.raises(CommandError) as failure:
        call_command("audit_ledger", "--scope", story.scope, stdout=printed)
    assert failure.value.returncode == 1
    assert "entry 2, hash: " in printed.getvalue()
    printed = io.StringIO()
    with pytest.raises(CommandError):
        call_command("audit_ledger", "--json", stdout=printed)
    verdict, counter = (json.loads(line) for line in printed.getvalue().splitlines())
    assert (counter["sound"], counter["problem"]) == (True, "")
    assert (verdict["sound"], verdict["differing"], verdict["differences"][0]["field"]) == (False, 1, "hash")


def test_the_command_knows_when_there_is_nothing_to_audit(db):
    with pytest.raises(CommandError, match="no account has the scope nowhere"):
        call_command("audit_ledger", "--scope", "nowhere")
