"""The database role of the process that serves the label pages: what it may do, table by table, and nothing else."""

from collections.abc import Mapping, Sequence

from django.db import connection, transaction

from dpal_site import roles

# By table: a privilege, or a privilege with the columns it is for. What is not named here is closed.
GRANTS: Mapping[str, Sequence[str]] = {
    "annotation_membership": ("SELECT", "UPDATE (guidelines_seen, paused_at, pause_reason)"),
    "annotation_crowdlink": ("SELECT",),
    "annotation_crowdparticipant": ("SELECT", "UPDATE (completed_at)"),
    # Readiness.
    "dpal_site_heartbeat": ("SELECT",),
    # What is asked. Locking a project's row takes the right to change one of its columns; this one never changes,
    # because memberships refer to it.
    "annotation_project": ("SELECT", "UPDATE (id)"),
    "annotation_guidelines": ("SELECT",),
    "annotation_guidelinepicture": ("SELECT",),
    # What managers declare, the words about the classes among it.
    "annotation_configuration": ("SELECT (id, document)",),
    "annotation_dataset": ("SELECT",),
    "annotation_query": ("SELECT", "UPDATE (state, overlap, open_slots, assigned_to_id)"),
    "annotation_goldquery": ("SELECT",),
    # What is answered.
    "annotation_assignment": ("SELECT", "INSERT", "UPDATE (state, leased_until, finished_at, skip_reason)"),
    "annotation_label": ("SELECT", "INSERT", "UPDATE (superseded_at)"),
    "annotation_consensus": ("SELECT", "INSERT", "DELETE"),
    "annotation_report": ("SELECT", "INSERT", "UPDATE (resolved_at, resolved_by_id, read_at)"),
    "annotation_encounter": ("SELECT (id, project_id, annotator_id)", "INSERT"),
    "annotation_qualityreport": ("SELECT",),
    # Limits are what the page promises; what was spent is in the ledger, which is closed.
    "privacy_budgetaccount": ("SELECT",),
}
FUNCTIONS = (
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


def grant_label_role(role: roles.RoleAddress) -> None:
    """Make the role if it is missing, and let it do what `GRANTS` says and nothing else; may be repeated."""
    with transaction.atomic(), connection.cursor() as cursor:
        limit = {"statement_timeout": f"{STATEMENT_SECONDS}s"}
        schema, name = roles.confine(cursor, role, address="LABEL_DATABASE_URL", settings=limit)
        roles.grant(cursor, schema, name, tables=GRANTS, functions=FUNCTIONS)
