"""Histories of an account as somebody who controls the site writes them, and what the three enforcers say of them.

Numbers, totals, hashes and the signature are right whatever the history is, so only the ledger's rules can refuse it.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import IntegrityError, transaction

from privacy.accounting.event import Event
from privacy.errors import PrivacyError
from privacy.ledger import services as ledger
from privacy.ledger import terms
from privacy.ledger.auditor.account import LIMITS, TOTAL_FIELDS
from privacy.ledger.auditor.chain import EPOCH, NO_HASH, entry_hash
from privacy.ledger.auditor.merkle import leaf_hash, root_of
from privacy.ledger.auditor.notes import Checkpoint, sign_checkpoint
from privacy.ledger.auditor.statement import FORMAT, audit_statement, signature_of
from privacy.ledger.entries import Draft, append, broken_rule
from privacy.ledger.keys import SiteKey
from privacy.ledger.models import BudgetAccount, EntryKind
from privacy.ledger.rules import charge_of

KEY = SiteKey.from_secret("a site's secret, long enough to derive a key from it")
MADE_AT = EPOCH + timedelta(days=20_000)
SCOPE = "project:forged:pool"


@dataclass(frozen=True)
class Step:
    """A reservation: its event, the step it names as its parent, and what is written in place of its charge."""

    event: Event
    parent: int | None = None
    instead: tuple[tuple[str, Any], ...] = ()

    def priced(self, **instead: Any) -> "Step":
        return replace(self, instead=tuple(instead.items()))

    def charge(self, adjacency: Any) -> dict[str, Any]:
        return asdict(charge_of(self.event, adjacency=adjacency)) | dict(self.instead)


@dataclass(frozen=True)
class History:
    """An account's terms and the reservations that stand on it, in their order."""

    steps: Sequence[Step]
    unit: str = "record"
    filter: str = "pure"
    adjacency: str = "null"

    @property
    def limits(self) -> dict[str, Any]:
        return {"epsilon_limit": 99_000 if self.filter == "pure" else 9_000, "delta_limit": 0.9}


def said_by_auditor(history: History) -> str:
    """Return what an auditor finds in a signed statement of a history; empty where it is sound."""
    findings = audit_statement(statement(history), public_key=KEY.public_key)
    return "; ".join(
        f"{each.field}: {each.stored}, must be {each.expected}"
        for verdict in findings.verdicts
        for each in verdict.differences
    )


def said_by_service(history: History) -> str:
    """Return the refusal of the first event that the service does not reserve; empty where it takes all."""
    account = _opened(history)
    try:
        for step in history.steps:
            ledger.reserve(account=account, event=step.event, purpose="a test", key=uuid4())
    except PrivacyError as error:
        return str(error)
    return ""


def said_by_database(history: History) -> str:
    """Return the rule by which the database refuses the first entry that it does not take; empty where it takes all."""
    account, entries = _opened(history), []
    try:
        for step in history.steps:
            parent = None if step.parent is None else entries[step.parent]
            with transaction.atomic():
                entries.append(
                    append(
                        Draft(
                            account=account,
                            kind=EntryKind.RESERVE,
                            parent=parent,
                            purpose="a test",
                            idempotency_key=uuid4(),
                            **step.charge(history.adjacency),
                        )
                    )
                )
    except IntegrityError as error:
        return broken_rule(error)
    return ""


def statement(history: History) -> bytes:
    """Return a signed statement of a history."""
    entries = _entries(history)
    first = json.loads(entries[0]["event_json"])
    leaves = [leaf_hash(bytes.fromhex(entry["hash"])) for entry in entries]
    head = entries[-1]["hash"]
    account = {
        **{name: first[name] for name in ("scope", "unit", "adjacency", "filter")},
        "label": "forged",
        "opened_at": MADE_AT.isoformat(),
        "limits": {name: first[name] for name in LIMITS},
        "chain_head": head,
        "checkpoint": sign_checkpoint(Checkpoint(f"site/{SCOPE}", len(leaves), root_of(leaves)), KEY),
        "verdict": {
            "sound": True,
            "scope": SCOPE,
            "entries": len(entries),
            "chain_head": head,
            "differing": 0,
            "differences": [],
        },
        "entries": entries,
    }
    body = {"format": FORMAT, "project": "forged", "made_at": MADE_AT.isoformat(), "accounts": [account]}
    before = json.dumps(body, ensure_ascii=False).encode()[:-1]
    return before + signature_of(hashlib.sha256(before).hexdigest(), KEY)


def _opened(history: History) -> BudgetAccount:
    fixed = {"unit": history.unit, "filter": history.filter, "adjacency": history.adjacency}
    return ledger.open_account(
        scope=f"forged:{uuid4()}", label="forged", actor="mallory", reason="a test", **fixed, **history.limits
    )


def _entries(history: History) -> list[dict[str, Any]]:
    account = BudgetAccount(scope=SCOPE, unit=history.unit, adjacency=history.adjacency, filter=history.filter)
    limits = terms.limits(filter=history.filter, delta_share=None, **history.limits)
    rows = [_row(1, kind="grant", mechanism="limits", event_json=terms.to_json(account, limits), reason="a test")]
    totals = dict.fromkeys(TOTAL_FIELDS, 0)
    for sequence, step in enumerate(history.steps, start=2):
        charge = step.charge(history.adjacency)
        for name, unit in (("epsilon", "nano"), ("delta", "atto"), ("rho", "nano"), ("mi", "nano")):
            for total in ("spent", "reserved"):
                totals[f"{name}_{total}_{unit}"] += charge[f"{name}_{unit}"] or 0
        totals["open_reservations"] += 1
        parent = None if step.parent is None else step.parent + 2
        key = str(UUID(int=sequence))
        rows.append(
            _row(sequence, kind="reserve", parent_id=parent, purpose="a test", idempotency_key=key, **charge | totals)
        )
    head = NO_HASH
    for row in rows:
        row["previous_hash"] = head
        row["hash"] = head = entry_hash(row | {"created_at": MADE_AT})
        reserved = row["kind"] == "reserve"
        row["mechanism_in_words"] = history.steps[row["sequence"] - 2].event.summary() if reserved else ""
    return rows


def _row(sequence: int, **fields: Any) -> dict[str, Any]:
    free = dict.fromkeys((*TOTAL_FIELDS, "epsilon_nano", "delta_atto", "rho_nano", "mi_nano"), 0)
    texts = dict.fromkeys(("mechanism", "subject", "purpose", "event_json", "output_digest", "actor", "reason"), "")
    placed = {"id": sequence, "account_id": 1, "sequence": sequence, "parent_id": None, "idempotency_key": None}
    moment = {"created_at": (MADE_AT - EPOCH) // timedelta(microseconds=1), "when": MADE_AT.isoformat()}
    return free | texts | placed | moment | fields
