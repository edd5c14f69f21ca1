import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import DataError, IntegrityError, connection, transaction

from privacy.ledger import migrations
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount, LedgerEntry
from tests.owning import as_owner

LABEL = '{"code": "l", "parameters": {}}'
NO_LABEL = '{"code": "", "parameters": {}}'
DIGEST = "ab" * 32


def execute(sql: str, *parameters: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)


def insert(account: BudgetAccount, **fields: object) -> None:
    given = {"account_id": account.pk, **fields}
    execute(
        f"INSERT INTO privacy_ledgerentry ({', '.join(given)}) VALUES ({', '.join(['%s'] * len(given))})",
        *given.values(),
    )


def reservation(account: BudgetAccount, **fields: object) -> LedgerEntry:
    insert(
        account,
        **{
            "kind": "reserve",
            "mechanism": "m",
            "purpose": "p",
            "event_json": json.dumps({"kind": fields.get("mechanism", "m")}),
            "idempotency_key": uuid4(),
            "epsilon_nano": 100,
        }
        | fields,
    )
    return account.entries.latest("sequence")


@pytest.fixture(autouse=True)
def whoever_asks(db) -> Iterator[None]:
    """Ask as the owner of the tables: the site's role would be refused most of this for want of a right."""
    with as_owner():
        yield


class refused_by:  # noqa: N801  # reads as a sentence
    def __init__(self, rule: str) -> None:
        self.rule = rule

    def __enter__(self) -> None:
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()

    def __exit__(self, kind, error, traceback) -> bool:
        # The savepoint ends before anything is asserted: one left open would fail every later test of the process.
        self.savepoint.__exit__(kind, error, traceback)
        if error is not None and not isinstance(error, IntegrityError):
            return False
        assert error is not None, f"the database let it happen; {self.rule} should have refused"
        assert error.__cause__.diag.constraint_name == self.rule
        return True


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT 1", AssertionError),
        ("SELECT 1 / 0", DataError),
        ("INSERT INTO privacy_ledgerentry DEFAULT VALUES", AssertionError),
    ],
)
def test_a_rule_that_does_not_hold_fails_its_own_test_alone(account, statement, expected):
    """What a failing test left open would be every later test's: 26 and 75 of them fell with one."""
    open_savepoints = list(connection.savepoint_ids)
    with pytest.raises(expected), refused_by("privacy_no_such_rule"):
        execute(statement)
    assert connection.savepoint_ids == open_savepoints
    assert not connection.needs_rollback
    reservation(account)


@pytest.mark.parametrize("table", ["privacy_ledgerentry", "privacy_budgetaccount"])
@pytest.mark.parametrize("statement", ["DELETE FROM {}", "DELETE FROM {} WHERE false", "TRUNCATE {} CASCADE"])
@pytest.mark.parametrize("role", ["origin", "replica"])
def test_nothing_is_removed(account, table, statement, role):
    execute("SET CONSTRAINTS ALL IMMEDIATE")  # else TRUNCATE waits for the foreign keys of the fixture
    execute(f"SET LOCAL session_replication_role = {role}")
    with refused_by("privacy_append_only"):
        execute(statement.format(table))
    execute("SET LOCAL session_replication_role = origin")


@pytest.mark.parametrize("field", ["purpose = 'x'", "epsilon_nano = 0", "hash = hash"])
def test_no_entry_is_rewritten(account, field):
    with refused_by("privacy_append_only"):
        execute(f"UPDATE privacy_ledgerentry SET {field}")


def test_the_owner_of_the_tables_is_refused_too(account):
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableowner = current_user FROM pg_tables WHERE tablename = 'privacy_ledgerentry'")
        assert cursor.fetchone() == (True,)
    with refused_by("privacy_append_only"):
        execute("DELETE FROM ONLY privacy_ledgerentry")


@pytest.mark.parametrize(
    "fields",
    [
        {"epsilon_nano": 10**9 + 1},
        {"epsilon_nano": 0, "delta_atto": 10**12 + 1},
        {"epsilon_nano": 10**9, "delta_atto": 10**12 + 1},
    ],
)
def test_pure_overspend(account, fields):
    with refused_by("privacy_ledger_within_limit"):
        reservation(account, **fields)
    reservation(account, epsilon_nano=10**9, delta_atto=10**12)


def test_zcdp_overspend(open_account):
    account = open_account(filter="zcdp")
    with refused_by("privacy_ledger_within_limit"):
        reservation(account, epsilon_nano=None, rho_nano=account.rho_limit_nano + 1)
    with refused_by("privacy_ledger_within_limit"):
        reservation(account, epsilon_nano=None, rho_nano=0, delta_atto=account.delta_sum_limit_atto + 1)
    reservation(account, epsilon_nano=None, rho_nano=account.rho_limit_nano, delta_atto=account.delta_sum_limit_atto)


def test_overspend_by_many_rows_in_one_statement(account):
    with refused_by("privacy_ledger_within_limit"):
        execute(
            "INSERT INTO privacy_ledgerentry "
            "(account_id, kind, mechanism, event_json, purpose, idempotency_key, epsilon_nano) "
            "SELECT %s, 'reserve', 'm', %s, 'p', gen_random_uuid(), 300000000 FROM generate_series(1, 4)",
            account.pk,
            '{"kind": "m"}',
        )


def test_overspend_behind_a_table_of_the_same_name(account):
    """A temporary table comes first in a session's search path; the rules must not read it."""
    execute("CREATE TEMPORARY TABLE privacy_budgetaccount (LIKE privacy_budgetaccount) ON COMMIT DROP")
    execute(
        "INSERT INTO pg_temp.privacy_budgetaccount (id, scope, label, unit, adjacency, filter, epsilon_limit_nano, "
        "created_at, delta_limit_atto, delta_sum_limit_atto, records_per_person, key_fingerprint) "
        f"VALUES (%s, 's', '{LABEL}', 'record', 'null', 'pure', 99000000000, now(), 0, 0, 1, '')",
        account.pk,
    )
    with refused_by("privacy_ledger_within_limit"):
        reservation(account, epsilon_nano=10**9 + 1)
    execute("DROP TABLE pg_temp.privacy_budgetaccount")


@pytest.mark.parametrize("second", ["commit", "charge", "void"])
def test_second_settlement(account, second):
    held = reservation(account)
    fields = {"parent_id": held.pk, "epsilon_nano": 100, "reason": "r"}
    insert(account, kind="charge", **fields)
    with refused_by("privacy_entry_one_settlement"):
        insert(account, kind=second, output_digest=DIGEST if second == "commit" else "", **fields)


@pytest.mark.parametrize("kind", ["commit", "charge", "void"])
@pytest.mark.parametrize("amount", ["epsilon_nano", "delta_atto", "rho_nano", "mi_nano"])
@pytest.mark.parametrize("change", [1, -1])
def test_settlement_of_another_amount(account, kind, amount, change):
    amounts = {"epsilon_nano": 100, "delta_atto": 100, "rho_nano": 100, "mi_nano": 100}
    held = reservation(account, **amounts)
    digest = DIGEST if kind == "commit" else ""
    with refused_by("privacy_entry_settles_amount"):
        insert(
            account,
            kind=kind,
            parent_id=held.pk,
            output_digest=digest,
            reason="r",
            **amounts | {amount: amounts[amount] + change},
        )


def test_settlement_that_empties_an_amount(account):
    held = reservation(account)
    with refused_by("privacy_entry_settles_amount"):
        insert(account, kind="void", parent_id=held.pk, epsilon_nano=None, reason="r")


def test_settlement_of_what_is_no_reservation(account):
    grant = account.entries.get(sequence=1)
    with refused_by("privacy_entry_settles_reservation"):
        insert(account, kind="void", parent_id=grant.pk, reason="r")


def test_settlement_on_another_account(account, open_account):
    held = reservation(account)
    with refused_by("privacy_entry_same_account"):
        insert(open_account(), kind="void", parent_id=held.pk, epsilon_nano=100, reason="r")


@pytest.mark.parametrize("kind", [None, "charge", "void"])
def test_post_processing_of_what_is_not_committed(account, kind):
    held = reservation(account)
    if kind:
        insert(account, kind=kind, parent_id=held.pk, epsilon_nano=100, reason="r")
    derived = {
        "kind": "post_processing",
        "mechanism": "m",
        "purpose": "p",
        "idempotency_key": uuid4(),
        "output_digest": DIGEST,
    }
    with refused_by("privacy_entry_ancestor_committed"):
        insert(account, parent_id=held.pk, **derived)
    with refused_by("privacy_entry_ancestor_committed"):
        insert(account, parent_id=account.entries.get(sequence=1).pk, **derived)


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("post_processing", "privacy_entry_ancestor_committed"),
        ("commit", "privacy_entry_settles_reservation"),
        ("charge", "privacy_entry_settles_reservation"),
        ("void", "privacy_entry_settles_reservation"),
    ],
)
def test_entries_that_lack_their_parent(account, kind, rule):
    digest = DIGEST if kind in ("post_processing", "commit") else ""
    key = uuid4() if kind == "post_processing" else None
    with refused_by(rule):
        insert(
            account,
            kind=kind,
            mechanism="m",
            purpose="p",
            reason="r",
            epsilon_nano=0,
            output_digest=digest,
            idempotency_key=key,
        )


def test_limits_that_descend_from_something(account):
    with refused_by("privacy_entry_parent"):
        grant(account, kind="limit_change", parent=account.entries.get(sequence=1))


@pytest.mark.parametrize("sequence", [1, 2, 4, -1])
def test_entries_out_of_sequence(account, sequence):
    reservation(account)
    with refused_by("privacy_entry_in_sequence"):
        reservation(account, sequence=sequence)
    reservation(account, sequence=3)


def test_entries_that_follow_another_chain(account):
    with refused_by("privacy_entry_in_sequence"):
        reservation(account, previous_hash="f" * 64)


def test_what_the_database_decides_is_not_taken_from_the_writer(account):
    written = reservation(account, hash="f" * 64, created_at="2001-01-01Z", epsilon_spent_nano=0, open_reservations=7)
    assert (written.epsilon_spent_nano, written.open_reservations) == (100, 1)
    assert written.created_at.year > 2001
    # Others read it and the hash covers it: a finer one would tell how long a step took.
    assert written.created_at.microsecond == 0
    assert written.hash != "f" * 64


@pytest.mark.parametrize(
    "change",
    [
        "epsilon_limit_nano = epsilon_limit_nano + 1",
        "delta_limit_atto = 0, delta_sum_limit_atto = 0",
        "delta_sum_limit_atto = delta_sum_limit_atto - 1",
        "rho_limit_nano = 1",
    ],
)
def test_limits_changed_by_hand(account, change):
    reservation(account)
    with refused_by("privacy_account_by_entry_only"):
        execute(f"UPDATE privacy_budgetaccount SET {change} WHERE id = %s", account.pk)


def test_limits_changed_by_hand_right_after_the_grant(account):
    with refused_by("privacy_account_by_entry_only"):
        execute("UPDATE privacy_budgetaccount SET epsilon_limit_nano = 5 WHERE id = %s", account.pk)


@pytest.mark.django_db
def test_accounts_opened_with_a_limit():
    with refused_by("privacy_account_by_entry_only"):
        execute(
            "INSERT INTO privacy_budgetaccount (scope, label, unit, filter, epsilon_limit_nano) "
            f"VALUES ('s', '{LABEL}', 'record', 'pure', 5)"
        )


@pytest.mark.parametrize(
    "change",
    ["adjacency = 'replace'", "unit = 'contributor'", "filter = 'zcdp'", "scope = 'other'", "created_at = now()"],
)
def test_terms_are_fixed(account, change):
    with refused_by("privacy_account_terms_fixed"):
        execute(f"UPDATE privacy_budgetaccount SET {change} WHERE id = %s", account.pk)
    execute("UPDATE privacy_budgetaccount SET label = %s WHERE id = %s", LABEL, account.pk)


@pytest.mark.parametrize("change", ["unit = 'person'", "adjacency = 'near'", "filter = 'renyi'"])
@pytest.mark.django_db
def test_accounts_with_unknown_words(change):
    words = {"unit": "'record'", "adjacency": "'null'", "filter": "'pure'"}
    name, _, value = change.partition(" = ")
    words[name] = value
    with refused_by("privacy_account_words"):
        execute(
            "INSERT INTO privacy_budgetaccount (scope, label, unit, adjacency, filter) "
            f"VALUES ('s', '{LABEL}', {', '.join(words.values())})"
        )


@pytest.mark.parametrize("values", [f"'', '{LABEL}'", f"'s', '{NO_LABEL}'"])
@pytest.mark.django_db
def test_accounts_without_a_name(values):
    with refused_by("privacy_account_named"):
        execute(f"INSERT INTO privacy_budgetaccount (scope, label, unit, filter) VALUES ({values}, 'record', 'pure')")


def empty_account(composition: str = "pure") -> BudgetAccount:
    return BudgetAccount.objects.create(scope=f"s{uuid4()}", label="l", unit="record", filter=composition)


def grant(account: BudgetAccount, kind: str = "grant", parent: LedgerEntry | None = None, **changes: object) -> None:
    terms = {
        "scope": account.scope,
        "unit": "record",
        "adjacency": "null",
        "filter": account.filter,
        "epsilon_limit_nano": 10**9,
        "delta_limit_atto": 10**12,
        "delta_sum_limit_atto": 10**12 if account.filter == "pure" else 5 * 10**11,
        "rho_limit_nano": None if account.filter == "pure" else 10**6,
    }
    insert(account, kind=kind, parent_id=parent and parent.pk, reason="r", event_json=json.dumps(terms | changes))


@pytest.mark.django_db
def test_an_account_begins_with_its_only_grant():
    account = empty_account()
    with refused_by("privacy_entry_grant_first"):
        reservation(account, epsilon_nano=0)
    grant(account)
    with refused_by("privacy_entry_grant_first"):
        grant(account)


@pytest.mark.parametrize(
    "change", [{"scope": "x"}, {"unit": "contributor"}, {"adjacency": "replace"}, {"filter": "zcdp"}]
)
@pytest.mark.django_db
def test_grants_that_name_other_terms(change):
    with refused_by("privacy_entry_terms"):
        grant(empty_account(), **change)


@pytest.mark.parametrize(
    ("composition", "change"),
    [
        ("pure", {"rho_limit_nano": 5}),
        ("pure", {"epsilon_limit_nano": None}),
        ("pure", {"delta_sum_limit_atto": None}),
        ("zcdp", {"rho_limit_nano": None}),
        ("zcdp", {"rho_limit_nano": 20_000_000}),
        ("zcdp", {"delta_sum_limit_atto": 10**12}),
    ],
)
@pytest.mark.django_db
def test_grants_whose_limits_do_not_hold(composition, change):
    with refused_by("privacy_entry_limits"):
        grant(empty_account(composition), **change)


@pytest.mark.django_db
def test_the_largest_sound_rho_is_granted_and_not_a_nano_more(open_account):
    granted = open_account(filter="zcdp").rho_limit_nano
    grant(empty_account("zcdp"), rho_limit_nano=granted)
    with refused_by("privacy_entry_limits"):
        grant(empty_account("zcdp"), rho_limit_nano=granted + 1)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"epsilon_limit_nano": -1}, "privacy_limit_above_spent"),
        ({"epsilon_limit_nano": 10**14 + 1}, "privacy_account_limits"),
        ({"delta_limit_atto": 10**18, "delta_sum_limit_atto": 10**18}, "privacy_account_limits"),
        ({"delta_sum_limit_atto": 10**11}, "privacy_account_filter"),
    ],
)
@pytest.mark.django_db
def test_grants_out_of_range(change, rule):
    with refused_by(rule):
        grant(empty_account(), **change)


def test_limits_below_what_is_spent(account):
    reservation(account, epsilon_nano=500, delta_atto=500)
    for change in ({"epsilon_limit_nano": 499}, {"delta_limit_atto": 499, "delta_sum_limit_atto": 499}):
        with refused_by("privacy_limit_above_spent"):
            grant(account, kind="limit_change", **change)
    grant(account, kind="limit_change", epsilon_limit_nano=500, delta_limit_atto=500, delta_sum_limit_atto=500)


@pytest.mark.parametrize("amount", ["epsilon_nano", "delta_atto", "rho_nano", "mi_nano"])
def test_negative_amounts(account, amount):
    reservation(account, epsilon_nano=1000, delta_atto=1000, rho_nano=1000, mi_nano=1000)
    with refused_by("privacy_entry_amounts"):
        reservation(account, **{amount: -1})


def test_costs_that_are_not_finite(account, open_account):
    with refused_by("privacy_entry_finite_cost"):
        reservation(account, epsilon_nano=None)
    with refused_by("privacy_entry_finite_cost"):
        reservation(open_account(filter="zcdp"), rho_nano=None)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"kind": "refund"}, "privacy_entry_kind"),
        ({"purpose": ""}, "privacy_entry_purpose"),
        ({"mechanism": ""}, "privacy_entry_purpose"),
        ({"idempotency_key": None}, "privacy_entry_key"),
        ({"output_digest": DIGEST}, "privacy_entry_digest"),
    ],
)
def test_reservations_of_the_wrong_shape(account, fields, rule):
    with refused_by(rule):
        reservation(account, **fields)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"kind": "void", "reason": ""}, "privacy_entry_reason"),
        ({"kind": "charge", "reason": ""}, "privacy_entry_reason"),
        ({"kind": "void", "reason": "r", "idempotency_key": uuid4()}, "privacy_entry_key"),
        ({"kind": "commit", "output_digest": ""}, "privacy_entry_digest"),
        ({"kind": "commit", "output_digest": "AB" * 32}, "privacy_entry_digest"),
        ({"kind": "commit", "output_digest": "ab"}, "privacy_entry_digest"),
    ],
)
def test_settlements_of_the_wrong_shape(account, fields, rule):
    held = reservation(account)
    with refused_by(rule):
        insert(account, **{"parent_id": held.pk, "epsilon_nano": 100} | fields)


def test_entries_that_must_be_free(account):
    held = reservation(account)
    insert(account, kind="commit", parent_id=held.pk, epsilon_nano=100, output_digest=DIGEST)
    with refused_by("privacy_entry_free"):
        insert(
            account,
            kind="post_processing",
            mechanism="m",
            purpose="p",
            parent_id=held.pk,
            epsilon_nano=1,
            output_digest=DIGEST,
            idempotency_key=uuid4(),
        )


def test_a_key_used_twice(account):
    held = reservation(account)
    with refused_by("privacy_ledgerentry_idempotency_key_key"):
        reservation(account, idempotency_key=held.idempotency_key)


CONTINUED = {"event_json": '{"kind": "m", "series": "continued"}'}


def test_series_that_do_not_stand(account):
    opened = reservation(account, event_json='{"kind": "m", "series": "opened"}')
    continued = reservation(account, parent_id=opened.pk, **CONTINUED)
    with refused_by("privacy_entry_series"):
        insert(account, kind="void", parent_id=opened.pk, epsilon_nano=100, reason="r")
    with refused_by("privacy_entry_series_continued_once"):
        reservation(account, parent_id=opened.pk, **CONTINUED)
    insert(account, kind="void", parent_id=continued.pk, epsilon_nano=100, reason="r")
    again = reservation(account, parent_id=opened.pk, **CONTINUED)
    insert(account, kind="void", parent_id=again.pk, epsilon_nano=100, reason="r")
    insert(account, kind="void", parent_id=opened.pk, epsilon_nano=100, reason="r")
    for parent in (opened.pk, account.entries.get(sequence=1).pk, None):
        with refused_by("privacy_entry_series"):
            reservation(account, parent_id=parent, **CONTINUED)
    alone = reservation(account)
    with refused_by("privacy_entry_series"):
        reservation(account, parent_id=alone.pk)
    with refused_by("privacy_entry_series_counted"):
        reservation(account, parent_id=alone.pk, **CONTINUED)


def test_a_reservation_is_what_its_event_says(account, open_account):
    with refused_by("privacy_entry_mechanism"):
        reservation(account, event_json='{"kind": "another"}')
    with refused_by("privacy_entry_mechanism"):
        reservation(account, event_json="{}")
    with refused_by("privacy_entry_unit"):
        reservation(open_account(unit="contributor"))


@pytest.mark.django_db
def test_an_entry_needs_an_account():
    nobody = BudgetAccount(pk=-1)
    with refused_by("privacy_entry_account"):
        reservation(nobody)


def test_the_rules_can_be_taken_back_and_put_up_again(account, priced):
    execute("SET CONSTRAINTS ALL IMMEDIATE")
    folder = Path(migrations.__file__).parent / "sql"
    execute((folder / "rules.reverse.sql").read_text())
    with connection.cursor() as cursor:
        cursor.execute(r"SELECT count(*) FROM pg_proc WHERE proname LIKE 'privacy\_%%'", [])
        assert cursor.fetchone() == (0,)
    for file in ("events.sql", "rules.sql"):
        execute((folder / file).read_text())
    ledger.reserve(account=account, event=priced(0.5), purpose="p", key=uuid4())
    with refused_by("privacy_append_only"):
        execute("DELETE FROM privacy_ledgerentry")
