"""The database role of the label process, tried out on every table: what is not declared is refused."""

import contextlib
from secrets import token_hex

import psycopg
import pytest
from django.apps import apps
from django.db import connection, transaction
from psycopg import sql

from annotation.models import Record
from dpal_site import label_role
from dpal_site.embedded.database_address import parse_database_url
from tests.factories import make_account, make_project, make_records, open_records

# Whoever reads one of these through the label process has broken the boundary.
PRIVATE = {
    "annotation_record",
    "annotation_recordpost",
    "annotation_gaterun",
    "annotation_gatepart",
    "annotation_apitoken",
    "annotation_invitation",
    "annotation_job",
    "annotation_action",
    "annotation_projectchange",
    "annotation_idempotentanswer",
    "annotation_opinion",
    "privacy_ledgerentry",
    "account_emailaddress",
    "mfa_authenticator",
    "socialaccount_socialtoken",
    "django_admin_log",
    "learner_modelrelease",
    "learner_round",
    "learner_trainingrun",
}
VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
COLUMN_VERBS = ("SELECT", "INSERT", "UPDATE", "REFERENCES")


def tables():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class"
            " WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v', 'm')"
        )
        return sorted(name for (name,) in cursor.fetchall())


@pytest.fixture
def role(db):
    """Make a role of this test's own, gone with its transaction."""
    made = label_role.RoleAddress(f"label_{token_hex(6)}", token_hex(16))
    label_role.grant_label_role(made)
    return made.name


@contextlib.contextmanager
def acting_as(role):
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        try:
            yield cursor
        finally:
            cursor.execute("RESET ROLE")


def refused(role, statement, values=()):
    """Say whether the database refuses the statement to the role for want of a right, and for nothing else."""
    with acting_as(role) as cursor:
        try:
            with transaction.atomic():
                cursor.execute(statement, values)
        except Exception as error:
            if not isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege):
                raise
            return True
        return False


def granted(role, table):
    """Return every right the role has on a table, column by column where it has it on some."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT verb FROM unnest(%s::text[]) verb WHERE has_table_privilege(%s, %s::regclass, verb)",
            [list(VERBS), role, table],
        )
        whole = {verb for (verb,) in cursor.fetchall()}
        cursor.execute(
            "SELECT verb, attname FROM pg_attribute, unnest(%s::text[]) verb WHERE attrelid = %s::regclass"
            " AND attnum > 0 AND NOT attisdropped AND has_column_privilege(%s, attrelid, attnum, verb)",
            [list(COLUMN_VERBS), table, role],
        )
        columns = {(verb, name) for verb, name in cursor.fetchall() if verb not in whole}
    return whole, columns


def declared(table):
    whole, columns = set(), set()
    for privilege in label_role.GRANTS.get(table, ()):
        verb, _, names = privilege.partition(" (")
        if names:
            columns |= {(verb, name.strip()) for name in names.rstrip(")").split(",")}
        else:
            whole.add(verb)
    return whole, columns


def test_every_table_gives_the_role_what_is_declared_and_nothing_else(role):
    assert set(label_role.GRANTS) <= set(tables())
    assert {table: granted(role, table) for table in tables()} == {table: declared(table) for table in tables()}


def test_a_right_too_many_is_noticed(role):
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("GRANT SELECT (text) ON annotation_record TO {}").format(sql.Identifier(role)))
    assert granted(role, "annotation_record") != declared("annotation_record")


def test_reading_is_tried_on_every_table(role):
    make_records(make_project(), ["something nobody may see"])
    readable = {table for table in tables() if not refused(role, f'SELECT * FROM "{table}" LIMIT 1')}
    assert readable == {table for table, rights in label_role.GRANTS.items() if "SELECT" in rights}
    assert not readable & PRIVATE


def test_private_tables_are_closed_column_by_column(role):
    assert set(tables()) >= PRIVATE
    closed = PRIVATE | {"annotation_encounter"}
    for model in apps.get_models(include_auto_created=True):
        table = model._meta.db_table
        if table not in closed:
            continue
        for field in model._meta.concrete_fields:
            told = ("SELECT", field.column) in declared(table)[1]
            assert refused(role, f'SELECT count("{field.column}") FROM "{table}"') is not told, (table, field.column)


def test_no_contributor_is_told_in_a_roundabout_way(role):
    (record,) = make_records(make_project(), ["something nobody may see"])
    Record.objects.filter(pk=record.pk).update(contributor=b"c" * 16)
    for statement in (
        "SELECT contributor FROM annotation_encounter",
        "SELECT max(contributor) FROM annotation_record",
        "COPY annotation_record TO STDOUT",
        "SELECT pg_read_file('PG_VERSION')",
        "CREATE TABLE mine (copied text)",
        "INSERT INTO annotation_encounter (project_id, annotator_id, contributor)"
        " VALUES (1, 1, '\\x01') RETURNING contributor",
    ):
        assert refused(role, statement), statement
    with acting_as(role) as cursor:
        cursor.execute("SELECT count(*) FROM pg_stats WHERE tablename = 'annotation_record'")
        assert cursor.fetchone() == (0,)


def test_a_record_is_told_once_it_was_asked_about_and_without_its_contributor(role):
    project = make_project()
    (kept,) = make_records(project, ["never asked"])
    (query,) = open_records(project, 1)
    with acting_as(role) as cursor:
        cursor.execute("SELECT * FROM annotation_asked_record(%s)", [kept.pk])
        assert cursor.fetchall() == []
        cursor.execute("SELECT * FROM annotation_asked_record(%s)", [query.record_id])
        assert [column.name for column in cursor.description] == ["id", "dataset_id", "row_number", "text", "payload"]
        assert len(cursor.fetchall()) == 1


def test_the_functions_are_for_the_role_alone(role):
    stranger = f"stranger_{token_hex(6)}"
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(stranger)))
        for function in label_role.FUNCTIONS:
            cursor.execute(
                "SELECT has_function_privilege(%s, %s, 'EXECUTE'), has_function_privilege(%s, %s, 'EXECUTE')",
                [role, function, stranger, function],
            )
            assert cursor.fetchone() == (True, False)
        cursor.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND prosecdef"
            " AND prorettype <> 'trigger'::regtype"
        )
        assert {name for (name,) in cursor.fetchall()} == {each.partition("(")[0] for each in label_role.FUNCTIONS}


def test_the_label_process_must_not_be_the_owner(db):
    owner = parse_database_url("postgresql://x@y/z") | {"USER": connection.settings_dict["USER"]}
    with pytest.raises(ValueError, match="owns the database"):
        label_role.grant_label_role(label_role.RoleAddress(owner["USER"], ""))


def test_granting_again_takes_back_what_was_given_by_hand(role):
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("GRANT SELECT ON annotation_record TO {}").format(sql.Identifier(role)))
    label_role.grant_label_role(label_role.RoleAddress(role, token_hex(16)))
    assert refused(role, "SELECT * FROM annotation_record")


def test_what_is_left_of_an_account_is_told_without_its_entries(role):
    account = make_account(epsilon_limit=3.0)
    with acting_as(role) as cursor:
        cursor.execute("SELECT * FROM privacy_account_totals(%s)", [account.pk])
        assert [column.name for column in cursor.description] == ["epsilon_nano", "rho_nano"]
        assert cursor.fetchall() == [(0, 0)]
