"""The database role of web servers and workers: it uses the tables and owns none, so no rule of theirs is its to lift.

Constraints, triggers and the ledger's chain hold for whoever is not the owner. The owner's address belongs to `migrate`
alone (`DATABASE_OWNER_URL`); everything else of a site runs as this role, or as the narrower one of the label pages.
"""

from collections.abc import Mapping, Sequence

from django.db import connection, transaction
from psycopg import sql

from dpal_site import roles

EVERYTHING = ("SELECT", "INSERT", "UPDATE", "DELETE")
ADDED = ("SELECT", "INSERT")
# Where the site may do less than everything with the rows of a table: facts that stay, and what migrations write.
LESS: Mapping[str, Sequence[str]] = {
    "privacy_ledgerentry": ADDED,
    # A trigger sets the limits after an entry that says so, and refuses every other change; whoever writes an entry
    # locks the account's row, which takes the right to change one of its columns.
    "privacy_budgetaccount": (
        *ADDED,
        "UPDATE (epsilon_limit_nano, delta_limit_atto, delta_sum_limit_atto, rho_limit_nano)",
    ),
    # Which counter is the site's is for the owner to say.
    "privacy_ledgercounter": ("SELECT",),
    # Whoever shares a limit shares it for good.
    "privacy_population": ADDED,
    "privacy_quota": ADDED,
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
    "auth_user_groups": (*ADDED, "DELETE"),
    "annotation_grouprole": (*ADDED, "DELETE"),
    "annotation_populationmanager": ADDED,
    "annotation_populationrequest": ("SELECT", "INSERT", "UPDATE"),
    "annotation_project": ("SELECT", "INSERT", "UPDATE"),
    "learner_modelrelease": ("SELECT", "INSERT", "UPDATE"),
    "learner_modelrelease_lineage": ADDED,
    "learner_randomizedlabel": (*ADDED, "DELETE"),
    "learner_evaluation": ADDED,
    "learner_stoppingadvice": ADDED,
    "django_migrations": ("SELECT",),
    "django_content_type": ("SELECT",),
    "auth_permission": ("SELECT",),
}


def grant_site_role(role: roles.RoleAddress) -> None:
    """Make the role if it is missing, and let it do what is said here and nothing else; may be repeated."""
    with transaction.atomic(), connection.cursor() as cursor:
        schema, name = roles.confine(cursor, role, address="DATABASE_URL")
        tables = {table: LESS.get(table, EVERYTHING) for table in sorted(_tables(cursor))}
        roles.grant(cursor, schema, name, tables=tables)
        cursor.execute(sql.SQL("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {} TO {}").format(schema, name))
        cursor.execute(sql.SQL("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {} TO {}").format(schema, name))


def _tables(cursor: object) -> set[str]:
    cursor.execute(  # type: ignore[attr-defined]
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')"
    )
    return {name for (name,) in cursor.fetchall()}  # type: ignore[attr-defined]
