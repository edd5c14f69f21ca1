"""REST routes of the ledger and of the log."""

import base64
import json
from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import override
from ninja import Field, Query

from annotation.budget import presenters
from annotation.budget.action_words import action_sentence
from annotation.budget.downloads import statement_response
from annotation.budget.history import actions_in
from annotation.models import Project, Role
from annotation.work.reads import Answer, Reads
from annotation.work.rest import Moment, Page, RoomRouter, page_of, project_for, responses
from annotation.work.services.tokens import Scope
from privacy.ledger import selectors as privacy_selectors
from privacy.ledger.checkpoints import Log, log_of
from privacy.ledger.models import AccountUnit, BudgetAccount, EntryKind, Filter

router = RoomRouter()
AfterSequence = Annotated[int, Field(ge=0, le=2**62, description="Only entries with a larger number.")]
LARGEST = 2**62
DOCUMENT = {
    200: {
        "description": "The document; docs/statement.md has its schema",
        "headers": {"Content-Disposition": {"required": True, "schema": {"type": "string"}}},
        "content": {"application/json": {}},
    }
}
AccountScope = Annotated[
    str, Field(max_length=200, description="Scope of an account; the project's first one if empty.")
]
TreeSize = Annotated[int, Field(ge=0, le=LARGEST, description="Entries of the tree; all there are if 0.")]
Old = Annotated[int, Field(ge=0, le=LARGEST, description="Entries of the tree that was seen before.")]
EntryNumber = Annotated[int, Field(ge=1, le=LARGEST, description="Number of the entry, from 1.")]


class CheckpointOut(Answer, reads=Reads.LEDGER):
    """A signed checkpoint of one account's log, as https://c2sp.org/tlog-checkpoint defines it."""

    account: str
    checkpoint: str


class ConsistencyOut(Answer, reads=Reads.LEDGER):
    """Proof that a log grew: hashes in base64, in the order of RFC 9162."""

    account: str
    old: int
    size: int
    hashes: list[str]


class InclusionOut(Answer, reads=Reads.LEDGER):
    """Proof that an entry is in a log: its hash is the leaf, the checkpoint is that of the same size."""

    account: str
    sequence: int
    size: int
    hash: str
    hashes: list[str]
    checkpoint: str


@router.pages(
    "projects/{slug:slug}/ledger/checkpoints",
    response=list[CheckpointOut],
    summary="A signed checkpoint of each account, for a witness",
    problems=(409,),
)
def list_checkpoints(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    found = page_of(presenters.statement_accounts(_project(request, slug)), page, request=request, response=response)
    return [{"account": account.scope, "checkpoint": log_of(account).checkpoint()} for account in found]


@router.get(
    "projects/{slug:slug}/ledger/consistency",
    response=ConsistencyOut,
    summary="What shows that an account's log grew from one checkpoint to another",
    openapi_extra=responses(409),
)
def get_consistency(
    request: HttpRequest, slug: str, account: AccountScope = "", old: Old = 0, size: TreeSize = 0
) -> Any:
    return consistency_of(presenters.statement_accounts(_project(request, slug)), account, old=old, size=size)


@router.get(
    "projects/{slug:slug}/ledger/inclusion",
    response=InclusionOut,
    summary="What shows that an entry is in an account's log",
    openapi_extra=responses(409),
)
def get_inclusion(
    request: HttpRequest, slug: str, account: AccountScope = "", sequence: EntryNumber = 1, size: TreeSize = 0
) -> Any:
    found, log = _log(presenters.statement_accounts(_project(request, slug)), account)
    size = size or log.size
    return {
        "account": found.scope,
        "sequence": sequence,
        "size": size,
        "hashes": _encoded(log.inclusion(sequence, size)),
        "hash": log.hashes[sequence - 1],
        "checkpoint": log.checkpoint(size),
    }


def _project(request: HttpRequest, slug: str) -> Project:
    return project_for(request, slug, Scope.LEDGER_READ, Role.MANAGER, Role.ENGINEER)


def consistency_of(accounts: QuerySet[BudgetAccount], scope: str, *, old: int, size: int) -> dict[str, Any]:
    found, log = _log(accounts, scope)
    size = size or log.size
    return {"account": found.scope, "old": old, "size": size, "hashes": _encoded(log.consistency(old, size))}


def _log(accounts: QuerySet[BudgetAccount], scope: str) -> tuple[BudgetAccount, Log]:
    account = get_object_or_404(accounts, scope=scope) if scope else accounts.first()
    if account is None:
        raise Http404
    return account, log_of(account)


def _encoded(hashes: Sequence[bytes]) -> list[str]:
    return [base64.b64encode(each).decode() for each in hashes]


class EntryOut(Answer, reads=Reads.SETTINGS):
    """One entry of the ledger; `account` is the scope of its account."""

    account: str = Field(alias="account.scope")
    sequence: int
    kind: str
    mechanism: str
    purpose: str
    subject: str
    actor: Annotated[str, Reads.LEDGER]
    reason: Annotated[str, Reads.LEDGER]
    approved_by: Annotated[str, Reads.LEDGER]
    epsilon_nano: int | None
    delta_atto: int
    rho_nano: int | None
    parent: int | None
    created_at: Annotated[Moment, Reads.LEDGER]
    hash: Annotated[str, Reads.LEDGER]
    output_digest: Annotated[str, Reads.RELEASED]

    @staticmethod
    def resolve_approved_by(entry: Any) -> str:
        """Name who agreed to a limit that one person may not change alone; empty for anything else."""
        return str(json.loads(entry.event_json).get("approved_by", "")) if entry.kind == EntryKind.LIMIT_CHANGE else ""

    @staticmethod
    def resolve_parent(entry: Any) -> int | None:
        """Name the entry this one settles or descends from by its place in the account."""
        return entry.parent.sequence if entry.parent else None


class AccountOut(Answer, reads=Reads.SETTINGS):
    """An account: the guarantee is its limit. `entries` counts them; `ledger/entries` has them."""

    scope: str
    unit: AccountUnit
    adjacency: str
    filter: Filter
    epsilon_limit: float
    epsilon_spent: Annotated[float, Reads.LEDGER]
    delta_limit: float
    delta_spent: Annotated[float, Reads.LEDGER]
    entries: Annotated[int, Reads.LEDGER] = Field(alias="sequence")
    chain_head: Annotated[str, Reads.LEDGER]


@router.pages("projects/{slug:slug}/ledger", response=list[AccountOut], summary="Accounts with limits and spending")
def list_accounts(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    project = project_for(request, slug, Scope.LEDGER_READ, Role.MANAGER, Role.ENGINEER)
    found = page_of(presenters.statement_accounts(project), page, request=request, response=response)
    return [privacy_selectors.guarantee(account) for account in found]


@router.pages("projects/{slug:slug}/ledger/entries", response=list[EntryOut], summary="Every entry, oldest first")
def list_entries(
    request: HttpRequest,
    response: HttpResponse,
    slug: str,
    page: Query[Page],
    account: str = "",
    after: AfterSequence = 0,
) -> Any:
    accounts = presenters.statement_accounts(project_for(request, slug, Scope.LEDGER_READ, Role.MANAGER, Role.ENGINEER))
    found = privacy_selectors.entries_of(accounts.filter(scope=account) if account else accounts, after=after)
    return page_of(found, page, request=request, response=response)


@router.get(
    "projects/{slug:slug}/ledger/statement",
    summary="Every entry with the audit's verdict, for an auditor",
    openapi_extra=responses(responses=DOCUMENT),
)
def get_statement(request: HttpRequest, slug: str) -> HttpResponseBase:
    return statement_response(project_for(request, slug, Scope.LEDGER_READ, Role.MANAGER, Role.ENGINEER))


class LogIn(Page):
    """Filter of the log by person, route and days of the site's zone; absent fields narrow nothing."""

    who: str = Field("", max_length=150)
    route: str = Field("", max_length=80, description="As `route` of a line.")
    since: date | None = None
    until: date | None = Field(None, description="The last day, included.")


class ActionOut(Answer, reads=Reads.MANAGED):
    """Something that a person did by a page, a route or a command; nobody is named where a period did it."""

    when: datetime
    who: str
    what: str = Field(description="In English, with the numbers of `target`.")
    route: str
    target: dict[str, int] = Field(description="Numbers of what it was done to.")


@router.pages("projects/{slug:slug}/log", response=list[ActionOut], summary="Who did what in a project, newest first")
def list_actions(request: HttpRequest, response: HttpResponse, slug: str, wanted: Query[LogIn]) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    found = actions_in(project, actor=wanted.who, route=wanted.route, since=wanted.since, until=wanted.until)
    with override("en"):
        return [
            {
                "when": action.created_at,
                "who": action.actor,
                "what": action_sentence(action),
                "route": action.route,
                "target": action.target,
            }
            for action in page_of(found, wanted, request=request, response=response)
        ]
