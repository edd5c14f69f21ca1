from secrets import token_hex

import pytest
from django.db import connection
from psycopg import sql

from dpal_site.operations import roles
from dpal_site.operations.deployment_checks import check_role
from dpal_site.operations.roles import RoleAddress, UnfitRole
from tests.db.dpal_site.operations.test_label_role import granted, tables
from tests.owning import as_owner

pytestmark = pytest.mark.django_db

# Triggers that refuse whatever is done, with no condition: whoever may not do it needs no right to.
ALWAYS_REFUSED = """
SELECT tgrelid::regclass::text, verb
FROM pg_trigger, (VALUES ('DELETE', 8), ('UPDATE', 16), ('TRUNCATE', 32)) bits (verb, bit)
WHERE NOT tgisinternal AND tgqual IS NULL AND tgattr = '' AND tgtype::int & bit <> 0
    AND tgfoid IN ('annotation_refuse'::regproc, 'privacy_keep_forever'::regproc)
"""


def run(statement, *names):
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(*(sql.Identifier(name) for name in names)))
        return cursor.fetchall() if cursor.description else []


def current_role():
    return run("SELECT current_user")[0][0]


def declared(table):
    rights = roles.SITE_LESS.get(table, roles.EVERYTHING)
    whole = {right for right in rights if "(" not in right}
    columns = {
        (verb, name.strip())
        for verb, _, names in (right.partition(" (") for right in rights)
        for name in names.rstrip(")").split(",")
        if names
    }
    return whole, columns


@pytest.fixture
def role():
    """Make a role of this test's own, gone with its transaction; what follows is done as the owner."""
    with as_owner():
        made = RoleAddress(f"site_{token_hex(6)}", token_hex(16))
        roles.grant_site_role(made)
        yield made


def test_tests_run_as_the_role_that_processes_get():
    assert current_role().startswith("site_")
    assert {table: granted(current_role(), table) for table in tables()} == {
        table: declared(table) for table in tables()
    }


def test_every_table_gives_what_is_declared_and_nothing_else(role):
    assert set(roles.SITE_LESS) <= set(tables())
    assert {table: granted(role.name, table) for table in tables()} == {table: declared(table) for table in tables()}


def test_what_a_trigger_always_refuses_is_no_right_of_the_site():
    refused = run(ALWAYS_REFUSED)
    assert ("privacy_ledgerentry", "DELETE") in refused
    assert [(table, verb) for table, verb in refused if verb in granted(current_role(), table)[0]] == []


def test_nothing_but_rows_is_its_to_change(role):
    for table in tables():
        (owner,) = run("SELECT tableowner FROM pg_tables WHERE tablename = '" + table + "'")[0]
        assert owner not in (role.name, current_role_of_tests())
    assert run(
        "SELECT count(*) FROM pg_proc JOIN pg_roles who ON who.oid = proowner WHERE rolname LIKE 'site\\_%%'"
    ) == [(0,)]


def current_role_of_tests():
    run("RESET ROLE")
    try:
        return current_role()
    finally:
        run("SET ROLE none")


def test_granting_again_takes_back_what_was_given_by_hand(role):
    run("GRANT UPDATE, TRUNCATE ON privacy_ledgerentry TO {}", role.name)
    run("GRANT UPDATE (scope) ON privacy_budgetaccount TO {}", role.name)
    run("GRANT pg_execute_server_program TO {}", role.name)
    run("ALTER ROLE {} CREATEROLE SUPERUSER", role.name)
    assert granted(role.name, "privacy_ledgerentry") != declared("privacy_ledgerentry")
    roles.grant_site_role(role)
    for table in ("privacy_ledgerentry", "privacy_budgetaccount"):
        assert granted(role.name, table) == declared(table)
    assert run(f"SELECT rolsuper, rolcreaterole FROM pg_roles WHERE rolname = '{role.name}'") == [(False, False)]
    assert run(f"SELECT pg_has_role('{role.name}', 'pg_execute_server_program', 'MEMBER')") == [(False,)]


def test_a_role_that_owned_the_tables_hands_them_over(role):
    """As an earlier version left them on a server of its own: migrated by the role that also served."""
    for table in tables():
        run("ALTER TABLE {} OWNER TO {}", table, role.name)
    roles.grant_site_role(role)
    assert granted(role.name, "privacy_ledgerentry") == declared("privacy_ledgerentry")
    assert run("SELECT count(*) FROM pg_tables WHERE tableowner = '" + role.name + "'") == [(0,)]


def test_the_site_must_not_be_the_owner(role):
    with pytest.raises(UnfitRole, match="DATABASE_URL names the role that owns the database"):
        roles.grant_site_role(RoleAddress(connection.settings_dict["USER"], ""))


class TestOwnerWhoIsNoSuperuser:
    """A managed Postgres: the owner of the tables is an ordinary role."""

    @pytest.fixture
    def owner(self, role):
        name = f"owner_{token_hex(6)}"
        run("CREATE ROLE {}", name)
        run("GRANT ALL ON SCHEMA public TO {}", name)
        run("ALTER SCHEMA public OWNER TO {}", name)
        for table in tables():
            run("ALTER TABLE {} OWNER TO {}", table, name)
        for (routine,) in run(
            "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        ):
            run(f"ALTER FUNCTION {routine} OWNER TO {{}}", name)
        run("SET ROLE {}", name)
        yield name
        run("SET ROLE none")

    def test_it_gives_rights_to_a_role_that_an_administrator_made(self, owner, role):
        roles.grant_site_role(role)
        assert granted(role.name, "privacy_ledgerentry") == declared("privacy_ledgerentry")

    def test_a_role_that_nobody_made_is_asked_for(self, owner):
        with pytest.raises(UnfitRole, match="have an administrator run CREATE ROLE nobody_made_it"):
            roles.grant_site_role(RoleAddress("nobody_made_it", "x"))

    @pytest.mark.parametrize(
        ("done", "refusal"),
        [
            ("ALTER ROLE {} SUPERUSER", "is a superuser"),
            ("ALTER ROLE {} CREATEROLE", "may make roles"),
            ("GRANT pg_read_all_data TO {}", "may act as pg_read_all_data"),
            ("ALTER TABLE annotation_label OWNER TO {}", "owns the tables"),
        ],
    )
    def test_a_role_above_its_rules_is_refused(self, owner, role, done, refusal):
        run("SET ROLE none")
        run(done, role.name)
        run("SET ROLE {}", owner)
        with pytest.raises(UnfitRole, match=refusal):
            roles.grant_site_role(role)

    def test_one_that_may_make_roles_makes_it(self, owner):
        run("SET ROLE none")
        run("ALTER ROLE {} CREATEROLE", owner)
        run("SET ROLE {}", owner)
        made = RoleAddress(f"site_{token_hex(6)}", token_hex(16))
        for _ in range(2):
            roles.grant_site_role(made)
        assert granted(made.name, "privacy_ledgerentry") == declared("privacy_ledgerentry")


def test_the_check_refuses_a_process_above_the_rules():
    assert check_role(None, ["default"]) == []
    with as_owner():
        assert [error.id for error in check_role(None, ["default"])] == ["dpal.E006"]
        assert check_role(None, None) == []
