"""The test database can be emptied, and has the same rules afterwards."""

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, connection

from annotation.models import Membership
from dpal_site.embedded.postgres import EmbeddedPostgres
from privacy.models import LedgerEntry
from tests.conftest import SHARED
from tests.emptying import KEPT, empty_tables
from tests.factories import make_account, make_project, open_records
from tests.owning import as_owner
from tests.template import make_template, template_name

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


@pytest.mark.django_db
def test_this_run_has_a_database_of_its_own():
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database(), current_setting('fsync')")
        name, fsync = cursor.fetchone()
    assert name.startswith("test_")
    assert fsync == "off"


def databases_of(postgres):
    with psycopg.connect(postgres.url(), autocommit=True) as connected:
        return dict(connected.execute("SELECT datname, oid FROM pg_database").fetchall())


@pytest.mark.django_db
def test_the_tables_are_copied_from_one_database_for_all_and_it_holds_no_rights_of_a_run(tmp_path):
    server = EmbeddedPostgres(SHARED / "postgres", durable=False)
    name = template_name()
    before = databases_of(server)
    make_template(server, name, tmp_path / "lock")
    assert databases_of(server)[name] == before[name]
    with psycopg.connect(server.url(name)) as template:
        assert template.execute("SELECT count(*) FROM annotation_knownchoice").fetchone() == (0,)
        rights = template.execute("SELECT DISTINCT unnest(relacl)::text FROM pg_class WHERE relname LIKE 'annotation%'")
        assert [right for (right,) in rights.fetchall() if "site" in right.partition("=")[0]] == []
        applied = template.execute("SELECT app, name FROM django_migrations ORDER BY 1, 2").fetchall()
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations ORDER BY 1, 2")
        assert cursor.fetchall() == applied
        cursor.execute("SELECT count(*) FROM annotation_knownchoice")
        assert cursor.fetchone()[0] > 0
