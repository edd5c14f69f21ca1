"""The whole statement as one JSON document that an auditor checks without this site (schema: `docs/statement.md`).

Every entry carries what its hash covers, so the chain is verified from the document alone.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from annotation.models import Oracle, Project
from privacy.accounting.events import event_from_json
from privacy.ledger.audit import audit_accounts
from privacy.ledger.auditor.account import Verdict
from privacy.ledger.auditor.chain import EPOCH, HASHED_FIELDS
from privacy.ledger.auditor.statement import FORMAT, signature_of
from privacy.ledger.checkpoints import checkpoint_at, site_key
from privacy.ledger.counter import site_counter
from privacy.ledger.models import BudgetAccount, EntryKind, LedgerEntry
from privacy.moments import whole_second

CHUNK = 2000
LIMITS = ("epsilon_limit_nano", "delta_limit_atto", "delta_sum_limit_atto", "rho_limit_nano")


def verdicts(accounts: Sequence[BudgetAccount]) -> list[Verdict]:
    """Compute every cost, total, hash and settlement of these accounts again, as `manage.py audit_ledger` does."""
    # The counter first: the ledger may grow meanwhile.
    marks = site_counter().marks()
    return [verdict for account in accounts for verdict in audit_accounts(scope=account.scope, marks=marks)]


def statement_json(owner: Project | BudgetAccount, accounts: Sequence[BudgetAccount]) -> Iterator[str]:
    """Write the document piece by piece; of each account it ends with the entry at which the audit ended."""
    digest = hashlib.sha256()
    for piece in _pieces(owner, accounts):
        digest.update(piece.encode())
        yield piece
    yield signature_of(digest.hexdigest(), site_key()).decode()


def _pieces(owner: Project | BudgetAccount, accounts: Sequence[BudgetAccount]) -> Iterator[str]:
    kind = "project" if isinstance(owner, Project) else "population"
    head = {"format": FORMAT, kind: owner.slug, "made_at": datetime.now(UTC).isoformat()}
    if isinstance(owner, Project) and owner.oracle == Oracle.CROWD:
        # Without an account of their own, answers were declared not to be secret.
        head["answers"] = "protected" if owner.labels_account_id is not None else "not secret"
    yield json.dumps(head)[:-1] + ', "accounts": ['
    for place, account in enumerate(accounts):
        (verdict,) = verdicts([account])
        yield (", " if place else "") + json.dumps(_account(account, verdict), ensure_ascii=False)[:-1]
        yield ', "entries": ['
        yield from _entries(account, verdict.entries)
        yield "]}"
    yield "]"


def _account(account: BudgetAccount, verdict: Verdict) -> dict[str, Any]:
    return {
        "scope": account.scope,
        "label": account.plain_label,
        "unit": account.unit,
        "adjacency": account.adjacency,
        "filter": account.filter,
        "opened_at": whole_second(account.created_at).isoformat(),
        "limits": _limits(account, verdict.entries),
        "chain_head": verdict.chain_head,
        "checkpoint": checkpoint_at(account, verdict.entries),
        "verdict": {"sound": not verdict.differing} | asdict(verdict),
    }


def _limits(account: BudgetAccount, last: int) -> dict[str, Any]:
    grants = LedgerEntry.objects.filter(
        account=account, sequence__lte=last, kind__in=(EntryKind.GRANT, EntryKind.LIMIT_CHANGE)
    )
    newest = grants.order_by("-sequence").first()
    return {name: None if newest is None else newest.event.get(name) for name in LIMITS}


def _entries(account: BudgetAccount, last: int) -> Iterator[str]:
    rows = LedgerEntry.objects.filter(account=account, sequence__lte=last).order_by("sequence")
    for place, row in enumerate(rows.values(*HASHED_FIELDS, "hash").iterator(chunk_size=CHUNK)):
        yield (",\n" if place else "\n") + json.dumps(_entry(row), ensure_ascii=False)


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    moment = row["created_at"]
    key = row["idempotency_key"]
    return row | {
        # As the chain covers it, to the microsecond; the database writes whole seconds.
        "created_at": (moment - EPOCH) // timedelta(microseconds=1),
        "idempotency_key": None if key is None else str(key),
        "when": moment.astimezone(UTC).isoformat(),
        "mechanism_in_words": _words(row),
    }


def _words(row: dict[str, Any]) -> str:
    if row["kind"] not in (EntryKind.RESERVE, EntryKind.POST_PROCESSING):
        return ""
    try:
        return event_from_json(json.loads(row["event_json"])).summary()
    except ValueError:
        # The verdict says so; the document shows what is stored.
        return ""
