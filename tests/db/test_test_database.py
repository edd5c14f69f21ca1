import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, connection

from annotation.models import Membership
from privacy.ledger.models import LedgerEntry
from tests.counting import begin_over
from tests.emptying import KEPT, empty_tables, needs_new_sessions
from tests.factories import make_account, make_project, open_records
from tests.owning import as_owner

TRIGGERS = "SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2"


def triggers():
    with connection.cursor() as cursor:
        cursor.execute(TRIGGERS)
        return cursor.fetchall()


def rows(table):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return cursor.fetchone()[0]


@pytest.mark.parametrize("people", [1, 4_000], ids=["few rows", "so many that their tables are truncated"])
@pytest.mark.django_db(transaction=True)
def test_emptying_takes_every_row_and_leaves_every_rule_as_it_was(people):
    before = triggers()
    assert ("privacy_ledgerentry", "privacy_entry_forever", "A") in before
    open_records(make_project(), 3)
    User.objects.bulk_create(User(username=f"many-{number}") for number in range(people))
    permissions = rows("auth_permission")
    empty_tables()
    # The counter outside is looked at once a minute, which may be now.
    begin_over()
    assert triggers() == before
    written = set(connection.introspection.django_table_names(only_existing=True)) - {*KEPT}
    assert "privacy_ledgerentry" in written
    assert {table: rows(table) for table in written} == dict.fromkeys(written, 0)
    assert rows("auth_permission") == permissions > 0
    # The rules hold again in this session, too.
    with pytest.raises(IntegrityError, match="foreign key"):
        Membership.objects.create(project_id=1, user_id=1, role="annotator")
    make_account()
    with as_owner(), pytest.raises(DatabaseError, match="the ledger only grows"):
        LedgerEntry.objects.update(purpose="another")


SESSION = """
    SELECT pg_backend_pid(), current_user, session_user, current_setting('lock_timeout'),
           current_setting('session_replication_role'), current_setting('dpal.actor', true),
           to_regclass('left_behind')::text,
           (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory')
"""
LEFT_BEHIND = """
    SET ROLE none; SET session_replication_role = replica;
    SET lock_timeout = 1; SET dpal.actor = 'somebody'; CREATE TEMP TABLE left_behind (a int); SELECT pg_advisory_lock(1)
"""


def session():
    with connection.cursor() as cursor:
        cursor.execute(SESSION)
        return cursor.fetchone()


@pytest.mark.django_db(transaction=True)
def test_a_session_that_goes_on_is_as_a_new_one():
    connection.close()
    new = session()
    with connection.cursor() as cursor:
        cursor.execute(LEFT_BEHIND.format(role=new[1]))
    assert [after == before for before, after in zip(new, session(), strict=True)].count(False) == 6
    assert not needs_new_sessions(None)
    again = session()
    assert again[0] == new[0]
    # A setting of a name that nobody else knows stays known, and is empty.
    assert (*again[1:5], again[5] or None, *again[6:]) == new[1:]
