"""The database role of the process that serves the label pages: what it may do, table by table, and nothing else.

Annotators are the adversary of a crowd project, so the process that answers them holds no key to what they must not
see: it cannot read records, contributors, the ledger's entries, uploads' rows, models or tokens. Of a record it may ask
for what was put before annotators, by `annotation_asked_record`, and of an account whether anything is left.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from psycopg import sql

from dpal_site.embedded.database_address import parse_database_url

# By table: a privilege, or a privilege with the columns it is for. What is not named here is closed.
GRANTS: Mapping[str, Sequence[str]] = {
    # Who asks, and the session that says so.
    "auth_user": ("SELECT",),
    "django_session": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "annotation_membership": ("SELECT", "UPDATE (guidelines_seen, paused_at, pause_reason)"),
    "annotation_crowdlink": ("SELECT",),
    "annotation_crowdparticipant": ("SELECT", "UPDATE (completed_at)"),
    # Readiness.
    "dpal_site_heartbeat": ("SELECT",),
    # What is asked. Locking a project's row takes the right to change one of its columns; this one never changes,
    # because memberships refer to it.
    "annotation_project": ("SELECT", "UPDATE (id)"),
    "annotation_guidelines": ("SELECT",),
    "annotation_dataset": ("SELECT",),
    "annotation_query": ("SELECT", "UPDATE (state, overlap, open_slots)"),
    "annotation_goldquery": ("SELECT",),
    # What is answered.
    "annotation_assignment": ("SELECT", "INSERT", "UPDATE (state, leased_until, finished_at, skip_reason)"),
    "annotation_label": ("SELECT", "INSERT", "UPDATE (superseded_at)"),
    "annotation_consensus": ("SELECT", "INSERT", "DELETE"),
    "annotation_report": ("SELECT", "INSERT"),
    "annotation_encounter": ("SELECT (id, project_id, annotator_id)", "INSERT"),
    "annotation_qualityreport": ("SELECT",),
    # Limits are what the page promises; what was spent is in the ledger, which is closed.
    "privacy_budgetaccount": ("SELECT",),
}
FUNCTIONS = (
    "annotation_asked_record(bigint)",
    "annotation_has_met(bigint, bigint, bigint)",
    "privacy_account_totals(bigint)",
)
# A page that waits longer has lost its reader.
STATEMENT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class RoleAddress:
    """Name and password of the role, as the label process gives them."""

    name: str
    password: str


def role_of(url: str) -> RoleAddress:
    """Return the role that a database URL names."""
    settings = parse_database_url(url)
    return RoleAddress(settings["USER"], settings["PASSWORD"])


def grant_label_role(role: RoleAddress) -> None:
    """Make the role if it is missing, and let it do what `GRANTS` says and nothing else; may be repeated.

    Where the database's owner may not make roles, an administrator makes it first, and here it only gets its rights.
    """
    name = sql.Identifier(role.name)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT current_user = %s", [role.name])
        if cursor.fetchone()[0]:
            raise ValueError("the label process must not use the role that owns the database")
        cursor.execute("SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user")
        if cursor.fetchone()[0]:
            _make_role(cursor, role)
        schema = _schema(cursor)
        for statement in (
            "REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role}",
            "REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM {role}",
            "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM {role}",
            "GRANT USAGE ON SCHEMA {schema} TO {role}",
        ):
            cursor.execute(sql.SQL(statement).format(schema=schema, role=name))
        for table, privileges in GRANTS.items():
            granted = sql.SQL(", ".join(privileges))
            cursor.execute(sql.SQL("GRANT {} ON {}.{} TO {}").format(granted, schema, sql.Identifier(table), name))
        for function in FUNCTIONS:
            cursor.execute(sql.SQL("GRANT EXECUTE ON FUNCTION {}.{} TO {}").format(schema, sql.SQL(function), name))


def _make_role(cursor: object, role: RoleAddress) -> None:
    """Create the role, or give it the password it is known by now."""
    run = cursor.execute  # type: ignore[attr-defined]
    run("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)", [role.name])
    verb = "ALTER" if cursor.fetchone()[0] else "CREATE"  # type: ignore[attr-defined]
    terms = "LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD"
    name, password = sql.Identifier(role.name), sql.Literal(role.password or secrets.token_urlsafe(24))
    run(sql.SQL(f"{verb} ROLE {{}} {terms} {{}}").format(name, password))
    run(sql.SQL("ALTER ROLE {} SET statement_timeout = {}").format(name, sql.Literal(f"{STATEMENT_SECONDS}s")))


def _schema(cursor: object) -> sql.Identifier:
    cursor.execute("SELECT current_schema()")  # type: ignore[attr-defined]
    return sql.Identifier(cursor.fetchone()[0])  # type: ignore[attr-defined]
