"""The database's roles: one owns the tables, the others may use them as their lists say and are taken back to that."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from psycopg import sql

from dpal_site.embedded.database_address import parse_database_url

ATTRIBUTES = "LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
ABOVE_OTHERS = """
SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls FROM pg_roles WHERE rolname = %s
"""
BELONGS_TO = """
SELECT lent.rolname FROM pg_auth_members JOIN pg_roles lent ON lent.oid = roleid JOIN pg_roles who ON who.oid = member
WHERE who.rolname = %s
"""
# Whoever owns the database or the schema may drop what is in it.
OWNED = """
SELECT count(*) FROM pg_roles who, LATERAL (
    SELECT relname FROM pg_class WHERE relowner = who.oid AND relnamespace = current_schema()::regnamespace
    UNION ALL SELECT nspname FROM pg_namespace WHERE nspowner = who.oid AND nspname = current_schema()
    UNION ALL SELECT datname FROM pg_database WHERE datdba = who.oid AND datname = current_database()
) owned WHERE rolname = %s
"""


class UnfitRole(Exception):
    """A role must not be used the way an address names it; the message says what to do."""


@dataclass(frozen=True, slots=True)
class RoleAddress:
    name: str
    password: str


def role_of(url: str) -> RoleAddress:
    found = parse_database_url(url)
    return RoleAddress(found["USER"], found["PASSWORD"])


def confine(
    cursor: Any, role: RoleAddress, *, address: str, settings: Mapping[str, str] | None = None
) -> tuple[sql.Identifier, sql.Identifier]:
    """Leave a role, made if it is missing, without any right in our schema; return the schema's name and the role's."""
    name = sql.Identifier(role.name)
    cursor.execute("SELECT current_user = %s", [role.name])
    if cursor.fetchone()[0]:
        raise UnfitRole(
            f"{address} names the role that owns the database: keep that one in DATABASE_OWNER_URL, for migrations "
            f"alone, and give {address} a name of its own, which prepare_database then makes"
        )
    cursor.execute("SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user")
    if cursor.fetchone()[0]:
        _make(cursor, role, settings or {})
    _check(cursor, role.name, address)
    cursor.execute("SELECT current_schema()")
    schema = sql.Identifier(cursor.fetchone()[0])
    for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
        cursor.execute(sql.SQL(f"REVOKE ALL ON ALL {kind} IN SCHEMA {{}} FROM {{}}").format(schema, name))
    cursor.execute(sql.SQL("REVOKE ALL ON SCHEMA {} FROM {}").format(schema, name))
    # Whoever may make a table may put one before ours; servers before 15 let everybody.
    cursor.execute(sql.SQL("REVOKE CREATE ON SCHEMA {} FROM PUBLIC").format(schema))
    cursor.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, name))
    return schema, name


def grant(
    cursor: Any,
    schema: sql.Identifier,
    role: sql.Identifier,
    *,
    tables: Mapping[str, Sequence[str]],
    functions: Iterable[str] = (),
) -> None:
    for table, privileges in tables.items():
        granted = sql.SQL(", ".join(privileges))
        cursor.execute(sql.SQL("GRANT {} ON {}.{} TO {}").format(granted, schema, sql.Identifier(table), role))
    for function in functions:
        cursor.execute(sql.SQL("GRANT EXECUTE ON FUNCTION {}.{} TO {}").format(schema, sql.SQL(function), role))


def above_its_rules(cursor: Any) -> bool:
    """Say whether the role that asks could lift the rules it is held to: no process that serves anybody may."""
    cursor.execute("SELECT current_user")
    (name,) = cursor.fetchone()
    cursor.execute(ABOVE_OTHERS, [name])
    (above,) = cursor.fetchone()
    cursor.execute(OWNED, [name])
    return bool(above or cursor.fetchone()[0])


def _make(cursor: Any, role: RoleAddress, settings: Mapping[str, str]) -> None:
    cursor.execute("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)", [role.name])
    verb = "ALTER" if cursor.fetchone()[0] else "CREATE"
    name, password = sql.Identifier(role.name), sql.Literal(role.password or secrets.token_urlsafe(24))
    cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    above_all = cursor.fetchone()[0]
    # Others may not even take away what only a superuser gives; what is then left is refused by the check.
    attributes = ATTRIBUTES if above_all else "LOGIN NOINHERIT"
    cursor.execute(sql.SQL(f"{verb} ROLE {{}} {attributes} PASSWORD {{}}").format(name, password))
    for setting, value in settings.items():
        cursor.execute(sql.SQL(f"ALTER ROLE {{}} SET {setting} = {{}}").format(name, sql.Literal(value)))
    if above_all:
        cursor.execute(BELONGS_TO, [role.name])
        for (lent,) in cursor.fetchall():
            cursor.execute(sql.SQL("REVOKE {} FROM {}").format(sql.Identifier(lent), name))
        # One that used to own the tables of an earlier version.
        cursor.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(name))


def _check(cursor: Any, name: str, address: str) -> None:
    cursor.execute(ABOVE_OTHERS, [name])
    row = cursor.fetchone()
    if row is None:
        raise UnfitRole(
            f"the role {name} of {address} is missing, and the owner of the database may not make it: have an "
            f"administrator run CREATE ROLE {name} LOGIN NOINHERIT PASSWORD '...'"
        )
    if row[0]:
        raise UnfitRole(f"the role {name} of {address} is a superuser or may make roles, databases or copies")
    cursor.execute(BELONGS_TO, [name])
    if lent := sorted(each for (each,) in cursor.fetchall()):
        raise UnfitRole(f"the role {name} of {address} may act as {', '.join(lent)}: REVOKE that from it")
    cursor.execute(OWNED, [name])
    if cursor.fetchone()[0]:
        raise UnfitRole(
            f"the role {name} of {address} owns the tables, the schema or the database: have an administrator run "
            f"REASSIGN OWNED BY {name} TO the role of DATABASE_OWNER_URL"
        )


# The process of the label pages: what it may do, table by table, and nothing else.
# By table: a privilege, or a privilege with the columns it is for. What is not named here is closed.
LABEL_GRANTS: Mapping[str, Sequence[str]] = {
    "annotation_membership": ("SELECT", "UPDATE (guidelines_seen, paused_at, pause_reason)"),
    "annotation_crowdlink": ("SELECT",),
    "annotation_crowdparticipant": ("SELECT", "UPDATE (completed_at)"),
    # Readiness.
    "dpal_site_heartbeat": ("SELECT",),
    # What is asked. Locking a project's row takes the right to change one of its columns; this one never changes,
    # because memberships refer to it.
    "annotation_project": ("SELECT", "UPDATE (id)"),
    "annotation_duelook": ("SELECT (id)", "INSERT"),
    "annotation_guidelines": ("SELECT",),
    "annotation_guidelinepicture": ("SELECT",),
    # What managers declare, the words about the classes among it.
    "annotation_configuration": ("SELECT (id, document)",),
    "annotation_dataset": ("SELECT",),
    "annotation_query": ("SELECT", "UPDATE (state, overlap, open_slots, assigned_to_id)"),
    "annotation_goldquery": ("SELECT",),
    # What is answered.
    "annotation_assignment": ("SELECT", "INSERT", "UPDATE (state, leased_until, finished_at, skip_reason, place)"),
    "annotation_label": ("SELECT", "INSERT", "UPDATE (superseded_at)"),
    # Locked as a project's row is, until the answer that refers to it is stored.
    "annotation_spanset": ("SELECT", "INSERT", "UPDATE (id)"),
    "annotation_consensus": ("SELECT", "INSERT", "DELETE"),
    "annotation_report": ("SELECT", "INSERT", "UPDATE (resolved_at, resolved_by_id, read_at)"),
    "annotation_encounter": ("SELECT (id, project_id, annotator_id)", "INSERT"),
    "annotation_qualityreport": ("SELECT",),
    # Limits are what the page promises; what was spent is in the ledger, which is closed.
    "privacy_budgetaccount": ("SELECT",),
}
LABEL_FUNCTIONS = (
    "dpal_site_session_of(text)",
    "dpal_site_session_seen(text)",
    "dpal_site_session_ended(text)",
    "dpal_site_visitor(text, bytea, bytea)",
    "annotation_asked_record(bigint)",
    "annotation_asked_picture(bigint)",
    "annotation_has_met(bigint, bigint, bigint)",
    "annotation_answers_cap(uuid)",
    "privacy_account_totals(bigint)",
)
# A page that waits longer has lost its reader.
STATEMENT_SECONDS = 30


def grant_label_role(role: RoleAddress) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        limit = {"statement_timeout": f"{STATEMENT_SECONDS}s"}
        schema, name = confine(cursor, role, address="LABEL_DATABASE_URL", settings=limit)
        grant(cursor, schema, name, tables=LABEL_GRANTS, functions=LABEL_FUNCTIONS)


# Web servers and workers use the tables and own none: constraints, triggers and the chain hold for all but the owner.
EVERYTHING = ("SELECT", "INSERT", "UPDATE", "DELETE")
ADDED = ("SELECT", "INSERT")
# Where the site may do less than everything with the rows of a table: facts that stay, and what migrations write.
SITE_LESS: Mapping[str, Sequence[str]] = {
    "privacy_ledgerentry": ADDED,
    # A trigger sets the limits after an entry that says so, and refuses every other change; whoever writes an entry
    # locks the account's row, which takes the right to change one of its columns.
    "privacy_budgetaccount": (
        *ADDED,
        "UPDATE (epsilon_limit_nano, delta_limit_atto, delta_sum_limit_atto, rho_limit_nano, parent_id,"
        " records_per_person)",
    ),
    # Which counter is the site's is for the owner to say.
    "privacy_ledgercounter": ("SELECT",),
    # Goes with its project, and is never rewritten.
    "annotation_action": (*ADDED, "DELETE"),
    # What was said is settled, and goes with its record; nobody rewrites it.
    "annotation_report": (*ADDED, "DELETE", "UPDATE (resolved_at, resolved_by_id, reply, read_at)"),
    "annotation_projectchange": ADDED,
    "annotation_configuration": ADDED,
    "annotation_deletion": ADDED,
    "annotation_picture": (*ADDED, "DELETE"),
    # A registered table's files are those that were read then.
    "annotation_sourcefile": (*ADDED, "DELETE"),
    "annotation_guidelinepicture": (*ADDED, "DELETE"),
    "annotation_spanset": (*ADDED, "DELETE", "UPDATE (id)"),
    "auth_user_groups": (*ADDED, "DELETE"),
    "annotation_grouprole": (*ADDED, "DELETE"),
    "annotation_budgetmanager": ADDED,
    "annotation_project": ("SELECT", "INSERT", "UPDATE"),
    "learner_modelrelease": ("SELECT", "INSERT", "UPDATE"),
    "learner_modelrelease_lineage": ADDED,
    "learner_randomizedlabel": (*ADDED, "DELETE"),
    "learner_evaluation": ADDED,
    "django_migrations": ("SELECT",),
    "django_content_type": ("SELECT",),
    "auth_permission": ("SELECT",),
}


def grant_site_role(role: RoleAddress) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        schema, name = confine(cursor, role, address="DATABASE_URL")
        tables = {table: SITE_LESS.get(table, EVERYTHING) for table in sorted(_tables(cursor))}
        grant(cursor, schema, name, tables=tables)
        cursor.execute(sql.SQL("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {} TO {}").format(schema, name))
        cursor.execute(sql.SQL("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {} TO {}").format(schema, name))


def _tables(cursor: object) -> set[str]:
    cursor.execute(  # type: ignore[attr-defined]
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')"
    )
    return {name for (name,) in cursor.fetchall()}  # type: ignore[attr-defined]
