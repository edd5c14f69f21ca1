"""Audit the ledger where it is stored; `privacy.ledger.auditor.account` says what is looked at."""

# Nothing is taken from the database's own arithmetic, and the newest entry must be at least as new as the counter kept
# outside the database.

from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import F

from privacy.ledger import sharing
from privacy.ledger.auditor.account import AMOUNTS, LIMITS, AccountAudit, Verdict
from privacy.ledger.auditor.chain import HASHED_FIELDS
from privacy.ledger.marks import AccountIdentity, Mark
from privacy.ledger.models import BudgetAccount, LedgerEntry

CHUNK = 5000


def audit_accounts(*, scope: str | None, marks: dict[AccountIdentity, Mark] | None) -> Iterator[Verdict]:
    """Audit one account or all of them; without `scope`, an account the counter knows must also still exist.

    With `marks` None nothing is compared with the counter outside the database.
    """
    # An account that was never committed has a mark without an entry.
    unseen = {account: mark for account, mark in (marks or {}).items() if mark.sequence and not mark.closed}
    known = marks or {}
    accounts = BudgetAccount.objects.order_by("pk")
    for account in accounts if scope is None else accounts.filter(scope=scope):
        identity = AccountIdentity(account.scope, account.created_at)
        unseen.pop(identity, None)
        # A server-side cursor lives in a transaction.
        with transaction.atomic():
            verdict = AccountAudit(account, known.get(identity), counted=marks is not None).run(_rows(account))
            _check_population(account, verdict)
        yield verdict
    if scope is None:
        for identity, mark in unseen.items():
            verdict = Verdict(scope=identity.scope)
            verdict.expect(0, "account", "missing", f"entry {mark.sequence} as the counter says")
            yield verdict


def _check_population(account: BudgetAccount, verdict: Verdict) -> None:
    for quota in account.quotas.select_related("parent"):
        for entry, problem in sharing.unrepeated(quota):
            name = f"charged for entry {entry.sequence} of {quota.scope}"
            verdict.expect(verdict.entries, name, problem, "the price for a person, once")


def _rows(account: BudgetAccount) -> Iterator[dict[str, Any]]:
    parents = {f"parent_{name}": F(f"parent__{name}") for name in (*AMOUNTS, "sequence", "kind")}
    others = {
        "parent_account": F("parent__account_id"),
        "parent_event": F("parent__event_json"),
        "parent_parent_sequence": F("parent__parent__sequence"),
    }
    limits = {f"account_{name}": F(f"account__{name}") for name in LIMITS}
    entries = LedgerEntry.objects.filter(account=account).order_by("sequence")
    rows: Iterator[dict[str, Any]] = entries.values(*HASHED_FIELDS, "hash", **parents, **others, **limits).iterator(
        chunk_size=CHUNK
    )
    return rows
