import contextlib
import re
from secrets import token_hex

import psycopg
import pytest
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.db import connection, transaction
from django.test import Client
from psycopg import sql

from annotation.models import Picture, Record
from dpal_site.accounts.logins import SessionStore
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.operations import roles
from dpal_site.operations.roles import RoleAddress, UnfitRole
from tests.factories import make_account, make_project, make_records, open_records
from tests.owning import as_owner

# Whoever reads one of these through the label process has broken the boundary.
PRIVATE = {
    "auth_user",
    "dpal_site_session",
    "usersessions_usersession",
    "annotation_record",
    "annotation_recordpost",
    "annotation_gaterun",
    "annotation_poolpart",
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
    made = RoleAddress(f"label_{token_hex(6)}", token_hex(16))
    with as_owner():
        roles.grant_label_role(made)
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
    for privilege in roles.LABEL_GRANTS.get(table, ()):
        verb, _, names = privilege.partition(" (")
        if names:
            columns |= {(verb, name.strip()) for name in names.rstrip(")").split(",")}
        else:
            whole.add(verb)
    return whole, columns


def test_every_table_gives_the_role_what_is_declared_and_nothing_else(role):
    assert set(roles.LABEL_GRANTS) <= set(tables())
    assert {table: granted(role, table) for table in tables()} == {table: declared(table) for table in tables()}


def test_a_right_too_many_is_noticed(role):
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(sql.SQL("GRANT SELECT (text) ON annotation_record TO {}").format(sql.Identifier(role)))
    assert granted(role, "annotation_record") != declared("annotation_record")


def test_reading_is_tried_on_every_table(role):
    make_records(make_project(), ["something nobody may see"])
    readable = {table for table in tables() if not refused(role, f'SELECT * FROM "{table}" LIMIT 1')}
    assert readable == {table for table, rights in roles.LABEL_GRANTS.items() if "SELECT" in rights}
    assert not readable & PRIVATE


# What is tried on every column of every table, and on every table; nothing of it would change a row.
BY_COLUMN = {
    "SELECT": 'SELECT count("{column}") FROM "{table}"',
    "INSERT": 'INSERT INTO "{table}" ("{column}") SELECT NULL WHERE false',
    "UPDATE": 'UPDATE "{table}" SET "{column}" = DEFAULT WHERE false',
}
BY_TABLE = {
    "DELETE": 'DELETE FROM "{table}" WHERE false',
    "TRUNCATE": 'TRUNCATE "{table}" CASCADE',
    "TRIGGER": 'CREATE TRIGGER ours BEFORE DELETE ON "{table}" EXECUTE FUNCTION annotation_refuse()',
    "ALTER": 'ALTER TABLE "{table}" DISABLE TRIGGER ALL',
    "LOCK": 'LOCK TABLE "{table}" IN ACCESS EXCLUSIVE MODE',
}


def columns(table):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            [table],
        )
        return [name for (name,) in cursor.fetchall()]


def test_everything_is_tried_on_every_table_and_every_column(role):
    assert set(tables()) >= PRIVATE
    tried = wrong = 0
    for table in tables():
        whole, by_column = declared(table)
        for column in columns(table):
            for verb, statement in BY_COLUMN.items():
                let = verb in whole or (verb, column) in by_column
                tried += 1
                wrong += refused(role, statement.format(table=table, column=column)) is let
                assert not wrong, (verb, table, column)
        for verb, statement in BY_TABLE.items():
            # Whoever may delete rows may lock a table.
            let = verb in whole or (verb == "LOCK" and whole & {"DELETE"})
            tried += 1
            assert refused(role, statement.format(table=table)) is not let, (verb, table)
    assert tried > 1500


class TestWhoeverTookTheProcessOver:
    """They have the role, `SECRET_KEY`, and what visitors show; here a visitor and an administrator are logged in."""

    @pytest.fixture
    def people(self, role):
        return {
            "visitor": User.objects.create_user("visitor", password="correct horse battery"),
            "administrator": User.objects.create_superuser("root", "root@example.org", "correct horse battery"),
        }

    @pytest.fixture
    def browsers(self, people):
        found = {name: Client() for name in people}
        for name, browser in found.items():
            browser.force_login(people[name], backend="dpal_site.accounts.logins.ByUserName")
        return found

    def is_administrator(self, browser):
        return browser.get("/operations/").status_code == 200

    def all_it_reads(self, role):
        found = []
        for table in tables():
            for column in columns(table):
                if not refused(role, f'SELECT "{column}" FROM "{table}" LIMIT 0'):
                    with acting_as(role) as cursor:
                        cursor.execute(f'SELECT "{column}"::text FROM "{table}"')
                        found += [value or "" for (value,) in cursor.fetchall()]
        return "\n".join(found)

    def test_no_key_of_a_session_and_no_password_is_to_be_read(self, role, people, browsers):
        make_project(name="What it may read")
        told = self.all_it_reads(role)
        assert "What it may read" in told
        for name, browser in browsers.items():
            assert browser.cookies["sessionid"].value not in told
            assert browser.session.session_key not in told
            assert people[name].password not in told
        assert "root@example.org" not in told

    def test_no_session_is_made_into_the_administrators(self, role, people, browsers):
        root = people["administrator"]
        stolen = SessionStore().encode(
            {
                "_auth_user_id": str(root.pk),
                "_auth_user_backend": "dpal_site.accounts.logins.ByUserName",
                "_auth_user_hash": root.get_session_auth_hash(),
            }
        )
        table = SessionStore.get_model_class()._meta.db_table
        assert self.is_administrator(browsers["administrator"])
        for statement in (
            f"UPDATE {table} SET session_data = %s",
            f"INSERT INTO {table} (session_key, session_data, expire_date) SELECT 'ours', %s, now() + interval '1 day'",
        ):
            assert refused(role, statement, [stolen]), statement
        assert not self.is_administrator(browsers["visitor"])

    def test_functions_tell_only_by_the_secret(self, role, browsers):
        """What the table holds is no secret, whoever got hold of that."""
        asked = {"dpal_site_session_of(%s)": "session_data", "dpal_site_visitor(%s, '', '')": "username"}
        secret, key = browsers["visitor"].cookies["sessionid"].value, browsers["visitor"].session.session_key
        for function, column in asked.items():
            with acting_as(role) as cursor:
                cursor.execute(f"SELECT {column} FROM {function}", [secret])
                assert len(cursor.fetchall()) == 1
                for other in (key, "", "0" * 32):
                    cursor.execute(f"SELECT {column} FROM {function}", [other])
                    assert cursor.fetchall() == []

    def test_a_session_shown_to_it_can_be_noted_and_ended_and_no_other(self, role, browsers):
        secret = browsers["visitor"].cookies["sessionid"].value
        rows = SessionStore.get_model_class().objects
        before = rows.values_list("session_key", "session_data", "expire_date", "person").order_by("session_key")
        kept = list(before)
        with acting_as(role) as cursor:
            for shown in (secret, *[key for key, *_ in kept]):
                cursor.execute("SELECT dpal_site_session_seen(%s)", [shown])
        assert list(before) == kept
        assert rows.filter(seen_at=None).count() == 1
        with acting_as(role) as cursor:
            for shown in (secret, *[key for key, *_ in kept]):
                cursor.execute("SELECT dpal_site_session_ended(%s)", [shown])
        assert rows.get().person.username == "root"

    def test_a_link_to_set_a_new_password_takes_what_it_does_not_get(self, role, people, browsers):
        """The generator signs with `SECRET_KEY` and the password's hash; of the hash there is a digest under a salt."""
        with acting_as(role) as cursor:
            cursor.execute(
                "SELECT verified FROM dpal_site_visitor(%s, '', '')", [browsers["visitor"].cookies["sessionid"].value]
            )
            (verified,) = cursor.fetchone()
        assert bytes(verified) != b""
        assert bytes(verified).hex() not in people["visitor"].password
        visitor = people["visitor"]
        token = default_token_generator.make_token(visitor)
        visitor.password = bytes(verified).hex()
        assert not default_token_generator.check_token(visitor, token)


def test_the_manual_gives_a_reason_for_every_right():
    page = (REPOSITORY / "docs" / "security.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| [^|]{10,} \|$", page, re.MULTILINE)
    told = {table: {right.strip() for right in re.split(r",\s*(?![^(]*\))", rights)} for table, rights in rows}
    assert {table: told.get(table) for table in roles.LABEL_GRANTS} == {
        table: set(rights) for table, rights in roles.LABEL_GRANTS.items()
    }
    named = {function.partition("(")[0] for function in roles.LABEL_FUNCTIONS}
    assert {name for name, rights in told.items() if rights == {"EXECUTE"}} == named


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
        told = ["id", "dataset_id", "row_number", "text", "payload", "metadata"]
        assert [column.name for column in cursor.description] == told
        assert len(cursor.fetchall()) == 1


def test_a_picture_is_told_as_its_record_is(role):
    project = make_project()
    (kept,) = make_records(project, ["never asked"])
    (query,) = open_records(project, 1)
    for record_id in (kept.pk, query.record_id):
        Picture.objects.create(record_id=record_id, width=3, height=2, content=b"x")
    assert refused(role, "SELECT content FROM annotation_picture")
    with acting_as(role) as cursor:
        cursor.execute("SELECT * FROM annotation_asked_picture(%s)", [kept.pk])
        assert cursor.fetchall() == []
        cursor.execute("SELECT * FROM annotation_asked_picture(%s)", [query.record_id])
        assert [(width, height, bytes(content)) for width, height, content in cursor.fetchall()] == [(3, 2, b"x")]


def test_the_functions_are_for_the_role_alone(role):
    stranger = f"stranger_{token_hex(6)}"
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(stranger)))
        for function in roles.LABEL_FUNCTIONS:
            cursor.execute(
                "SELECT has_function_privilege(%s, %s, 'EXECUTE'), has_function_privilege(%s, %s, 'EXECUTE')",
                [role, function, stranger, function],
            )
            assert cursor.fetchone() == (True, False)
        cursor.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND prosecdef"
            " AND prorettype <> 'trigger'::regtype"
        )
        labelling = {each.partition("(")[0] for each in roles.LABEL_FUNCTIONS}
        assert {name for (name,) in cursor.fetchall()} == labelling | {"annotation_count_questions"}
        cursor.execute("SELECT has_function_privilege(%s, 'annotation_count_questions()', 'EXECUTE')", [stranger])
        assert cursor.fetchone() == (False,)


def test_the_label_process_must_not_be_the_owner(db):
    with as_owner(), pytest.raises(UnfitRole, match="LABEL_DATABASE_URL names the role that owns the database"):
        roles.grant_label_role(RoleAddress(connection.settings_dict["USER"], ""))


def test_granting_again_takes_back_what_was_given_by_hand(role):
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(sql.SQL("GRANT SELECT ON annotation_record TO {}").format(sql.Identifier(role)))
        roles.grant_label_role(RoleAddress(role, token_hex(16)))
    assert refused(role, "SELECT * FROM annotation_record")


def test_what_is_left_of_an_account_is_told_without_its_entries(role):
    account = make_account(epsilon_limit=3.0)
    with acting_as(role) as cursor:
        cursor.execute("SELECT * FROM privacy_account_totals(%s)", [account.pk])
        assert [column.name for column in cursor.description] == ["epsilon_nano", "rho_nano"]
        assert cursor.fetchall() == [(0, 0)]
