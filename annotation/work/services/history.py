"""Noting who does what, for the people who answer for a project."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import connection, transaction
from psycopg.pq import TransactionStatus

from annotation.models import Project
from annotation.models.database import session_setting
from annotation.models.history import Action
from annotation.work.services import looks

OF_ANSWERS = "who answered what and when is in the lease and the label"
# What is done without a line, and why.
UNNOTED: Mapping[str, str] = {
    "annotation:label": OF_ANSWERS,
    "annotation:submit": OF_ANSWERS,
    "annotation:skip": OF_ANSWERS,
    "annotation:undo": OF_ANSWERS,
    "annotation:correct_answer": OF_ANSWERS,
    "annotation:flag": "the report says who and when",
    "annotation:comment": "the report says who and when",
    "annotation:write_back": "the report says who and when",
    "annotation:read_guidelines": "the membership says which version the person has read",
    "annotation:review": "whoever looks leases a question; the review says who and until when",
    "annotation:new_project": "what is prepared waits for the person who brought it",
    "language_models:draft_for_opening": "what is prepared waits for the person who asked for it",
    "annotation:mails": "what a person wants to be told by mail, of no project",
    "annotation:crowd_start": "the participation says when; who it is nobody may know",
    "annotation:crowd_done": "the participation says when it was complete",
    "api:claim_assignment": OF_ANSWERS,
    "api:claim_batch": OF_ANSWERS,
    "api:answer_batch": OF_ANSWERS,
    "api:claim_review": "the review says who and until when",
    "api:label_assignment": OF_ANSWERS,
    "api:skip_assignment": OF_ANSWERS,
    "api:read_guidelines": "the membership says which version the person has read",
    "api:undo_last": OF_ANSWERS,
    "api:correct_answer": OF_ANSWERS,
    "api:flag_assignment": "the report says who and when",
    "api:comment_on_assignment": "the report says who and when",
    "api:mark_comments_read": "the report says who and when",
    "api:post_records": "each post of records has a row of its own, and there may be thousands an hour",
    "api:draft_project": "what is prepared waits for the person who brought it",
    "api:discard_draft": "what is prepared waits for the person who brought it",
    "api:predict": "nothing changes",
    "api:openapi-json": "nothing changes",
    "api:openapi-view": "nothing changes",
}
# Outside the noted parts of the site, by the beginning of a page's name.
UNNOTED_ELSEWHERE: Mapping[str, str] = {
    "login": "the session says who and since when",
    "logout": "the session ends",
    "second_factor": "nothing changes; the page leads on",
    "preferences": "language and time zone are the browser's own",
    "first_account": "nobody is there yet who could have done it; the account says when",
    "account_": "a person's own account, of no project; the person is told by mail",
    "mfa_": "a person's own account, of no project; the person is told by mail",
    "socialaccount_": "a person's own account, of no project",
    "openid_connect_": "a person's own account, of no project",
    "usersessions_": "a person's own sessions",
    "healthz": "nothing changes",
    "readyz": "nothing changes",
    "metrics": "nothing changes",
    "hub:": "nothing changes: files that were released are read",
    "wheel:": "nothing changes: the client's package is read",
}
# Each add-on adds its own.
NOTED_APPS = ["annotation:", "learner:", "api:", "admin:", "operations:"]
SET_ACTOR = "SELECT set_config('dpal.actor', %s, true)"


def is_noted(route: str) -> bool:
    return route.startswith(tuple(NOTED_APPS)) and route not in UNNOTED


def note_action(*, actor: str, route: str, arguments: Mapping[str, Any], project_id: int | None = None) -> Action:
    slug = arguments.get("slug")
    if slug and project_id is None:
        project_id = Project.objects.filter(slug=slug).values_list("pk", flat=True).first()
    if project_id is not None:
        # Whatever was changed: a higher limit or a resumed project lets a step come due.
        looks.look_at([project_id])
    target = {name: int(value) for name, value in arguments.items() if _is_number(name, value)}
    return Action.objects.create(project_id=project_id, actor=actor, route=route[:80], target=target)


def _is_number(name: str, value: Any) -> bool:
    return isinstance(value, int) or (name.endswith("_id") and str(value).isdecimal())


def note_effect(*, project: Project, actor: str, route: str, target: Mapping[str, int]) -> Action:
    """Write what something done elsewhere meant for a project, in the caller's transaction."""
    return Action.objects.create(project=project, actor=actor, route=route, target=dict(target))


def current_actor() -> str:
    """Return the name that `acting` told the database; empty outside of it."""
    return session_setting("dpal.actor")


@contextmanager
def acting(name: str) -> Iterator[None]:
    """Tell the database, transaction by transaction, who changes what until the end of the block."""
    if connection.in_atomic_block:
        _say(connection, name)
    with connection.execute_wrapper(partial(_named, name)):
        yield
    if connection.in_atomic_block and not connection.needs_rollback:
        _say(connection, "")


def _named(name: str, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Carry out a statement in a transaction that knows the name; what only reads alone needs none."""
    asked = context["connection"]
    if asked.in_atomic_block:
        if asked.connection.info.transaction_status == TransactionStatus.IDLE:
            _say(asked, name)
        return execute(sql, params, many, context)
    if isinstance(sql, str) and sql.lstrip()[:6].upper() == "SELECT":
        return execute(sql, params, many, context)
    with transaction.atomic(using=asked.alias):
        _say(asked, name)
        return execute(sql, params, many, context)


def _say(asked: Any, name: str) -> None:
    # Past Django's cursor, whose wrapper this is called from.
    asked.ensure_connection()
    with asked.wrap_database_errors:
        asked.connection.execute(SET_ACTOR, [name])
