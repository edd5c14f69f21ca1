import sys
from pathlib import Path
from secrets import token_hex

import psycopg
import pytest
from psycopg import errors

from dpal_site.embedded import host
from dpal_site.embedded.database_address import parse_database_url
from privacy.ledger.audit import audit_accounts
from privacy.ledger.models import LedgerEntry
from tests.factories import make_account

pytestmark = pytest.mark.faults

ENTRIES = "privacy_ledgerentry"
REFUSED = {
    "runs a program": "COPY (SELECT 1) TO PROGRAM 'id'",
    "reads what a program says": "COPY annotation_record (text) FROM PROGRAM 'id'",
    "writes a file": "COPY (SELECT 1) TO '/tmp/left_by_an_attack'",
    "reads a file": "SELECT pg_read_file('PG_VERSION')",
    "imports a file": "SELECT lo_import('/etc/hostname')",
    "loads code": "CREATE FUNCTION now_ours() RETURNS int LANGUAGE c AS '/tmp/ours.so'",
    "loads a library": "LOAD '/tmp/ours.so'",
    "disables all triggers": f"ALTER TABLE {ENTRIES} DISABLE TRIGGER ALL",
    "disables our triggers": "ALTER TABLE annotation_label DISABLE TRIGGER USER",
    "drops a trigger": f"DROP TRIGGER privacy_entry_forever ON {ENTRIES}",
    "drops a constraint": f"ALTER TABLE {ENTRIES} DROP CONSTRAINT privacy_ledgerentry_pkey",
    "drops the ledger": f"DROP TABLE {ENTRIES} CASCADE",
    "drops a rule": "DROP FUNCTION privacy_admit_entry() CASCADE",
    "rewrites a rule": "CREATE OR REPLACE FUNCTION privacy_keep_forever() RETURNS trigger LANGUAGE plpgsql"
    " AS 'BEGIN RETURN NEW; END'",
    "leads a rule elsewhere": "ALTER FUNCTION privacy_admit_entry() SET search_path = pg_temp",
    "puts a rule of its own before ours": "CREATE TRIGGER a_first BEFORE INSERT ON privacy_ledgerentry"
    " FOR EACH ROW EXECUTE FUNCTION privacy_open_empty()",
    "rewrites entries by a rule": f"CREATE RULE ours AS ON INSERT TO {ENTRIES} DO INSTEAD NOTHING",
    "poses as a replica": "SET session_replication_role = replica",
    "poses as a replica from now on": "ALTER ROLE CURRENT_USER SET session_replication_role = replica",
    "empties the ledger": f"TRUNCATE {ENTRIES}",
    "empties labels": "TRUNCATE annotation_label CASCADE",
    "rewrites entries": f"UPDATE {ENTRIES} SET epsilon_nano = 0, epsilon_spent_nano = 0",
    "deletes entries": f"DELETE FROM {ENTRIES}",
    "deletes accounts": "DELETE FROM privacy_budgetaccount",
    "renames an account": "UPDATE privacy_budgetaccount SET scope = 'another'",
    "rewrites the history": "UPDATE annotation_projectchange SET actor = 'nobody'",
    "rewrites the log of actions": "UPDATE annotation_action SET actor = 'nobody'",
    "takes a release away": "DELETE FROM learner_modelrelease",
    "forgets a migration": "DELETE FROM django_migrations",
    "numbers entries anew": "SELECT setval('privacy_ledgerentry_id_seq', 1)",
    "makes a table": "CREATE TABLE ours (copied text)",
    "makes a schema": "CREATE SCHEMA ours",
    "makes a role": "CREATE ROLE ours SUPERUSER",
    "becomes a superuser": "ALTER ROLE CURRENT_USER SUPERUSER",
    "makes roles from now on": "ALTER ROLE CURRENT_USER CREATEROLE",
    "may run programs": "GRANT pg_execute_server_program TO CURRENT_USER",
    "becomes the owner": "GRANT {owner} TO CURRENT_USER",
    "acts as the owner": "SET ROLE {owner}",
    "logs in as the owner": "SET SESSION AUTHORIZATION {owner}",
    "gives the owner a password": "ALTER ROLE {owner} PASSWORD 'ours'",
    "makes a database": "CREATE DATABASE ours",
    "takes the tables over": f"ALTER TABLE {ENTRIES} OWNER TO CURRENT_USER",
    "changes the server": "ALTER SYSTEM SET log_statement = 'all'",
    "changes the catalogue": "UPDATE pg_trigger SET tgenabled = 'D'",
    "reads passwords": "SELECT rolpassword FROM pg_authid",
}


@pytest.fixture
def owner(embedded_servers):
    return parse_database_url(embedded_servers.owner_url)["USER"]


@pytest.fixture
def address(supervisor):
    return supervisor._environment["DATABASE_URL"]


@pytest.fixture
def spent(transactional_db):
    return make_account(epsilon_limit=3.0)


def whole_ledger():
    return list(LedgerEntry.objects.order_by("pk").values())


@pytest.mark.slow
def test_no_attack_by_sql_gets_past_the_rules(live_site, address, owner, spent):
    """The site answers meanwhile, so what is refused is not refused because nothing works."""
    before = whole_ledger()
    assert before
    with psycopg.connect(address, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) > 0 FROM privacy_ledgerentry").fetchone() == (True,)
        let_through = {}
        for name, statement in REFUSED.items():
            try:
                connection.execute(statement.format(owner=owner))
            except errors.InsufficientPrivilege:
                continue
            let_through[name] = statement
        assert not let_through
        assert connection.execute("SELECT current_setting('is_superuser')").fetchone() == ("off",)
    assert whole_ledger() == before
    assert [verdict.differing for verdict in audit_accounts(scope=spent.scope, marks=None)] == [0]
    live_site.check_running()


def environment_of(pid):
    told = Path(f"/proc/{pid}/environ")
    assert host.wait_until(lambda: bool(told.read_bytes()), 120)
    return told.read_bytes().decode()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_that_serves_or_works_is_told_of_the_owner(
    live_site, celery_worker_process, embedded_servers, owner
):
    """The owner's password stands in none of their environments."""
    live_site.start_beat()
    password = parse_database_url(embedded_servers.owner_url)["PASSWORD"]
    for name in ("web", "worker", "beat"):
        told = environment_of(live_site.pid(name))
        assert "DATABASE_URL=" in told
        assert password not in told
        assert "DATABASE_OWNER_URL" not in told


def test_a_role_of_the_owners_rights_would_be_noticed(address, embedded_servers, owner):
    """The same attacks under the owner, as web and workers used to connect: the rules are gone."""
    with psycopg.connect(embedded_servers.owner_url) as connection:
        connection.execute(f"ALTER TABLE {ENTRIES} DISABLE TRIGGER ALL")
        connection.execute("COPY (SELECT 1) TO PROGRAM 'cat > /dev/null'")
        connection.execute(f"CREATE ROLE ours_{token_hex(4)}")
        connection.rollback()
