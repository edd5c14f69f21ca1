"""Check of a project's exported statement from the file alone: signature, chain, sums, limits, checkpoints."""

# Each cost is computed again from the parameters of its entry where the package `privacy` of the site's program can be
# imported: formulas that stood twice would be two promises. Elsewhere `audit` says which costs it took as they are.

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dpal.errors import NotGenuine
from dpal.ledger import check_ledger

FORMAT = "dpal-statement/1"
SIGNED_BEFORE = b',\n"signature"'
COVERED = (
    "id account_id sequence kind parent_id mechanism subject purpose event_json epsilon_nano delta_atto rho_nano"
    " mi_nano epsilon_spent_nano delta_spent_atto rho_spent_nano mi_spent_nano epsilon_reserved_nano"
    " delta_reserved_atto rho_reserved_nano mi_reserved_nano open_reservations idempotency_key output_digest actor"
    " reason created_at previous_hash"
)
SPENT = {"epsilon_spent_nano": "epsilon_nano", "delta_spent_atto": "delta_atto", "rho_spent_nano": "rho_nano"}
SIGNS = {"reserve": 1, "void": -1}
PRICED = ("reserve", "post_processing")


@dataclass(frozen=True)
class Audited:
    """Result of an audit."""

    entries: int
    faults: tuple[str, ...]
    recomputed: int
    taken: Mapping[str, tuple[int, ...]]


def audit(content: bytes, *, public_key: str) -> Audited:
    """Check a statement, its costs as far as they can be computed here."""
    try:
        body: dict[str, Any] = json.loads(content)
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
        made = base64.b64decode(body["signature"]["signature"], validate=True)
        digest = hashlib.sha256(content.rpartition(SIGNED_BEFORE)[0]).hexdigest()
        key.verify(made, f"{FORMAT}\n{digest}\n".encode())
        accounts = body["accounts"]
        found = [f"{one['scope']}: {fault}" for one in accounts for fault in _faults(one, key)]
        priced = {
            str(one["scope"]): tuple(int(each["sequence"]) for each in one["entries"] if each["kind"] in PRICED)
            for one in accounts
        }
        anew = _costs_anew(content, public_key)
        count = sum(map(len, priced.values()))
        entries = sum(len(one["entries"]) for one in accounts)
        if anew is None:
            return Audited(entries, tuple(found), 0, {scope: these for scope, these in priced.items() if these})
        return Audited(entries, tuple(found + [one for one in anew if one not in found]), count, {})
    except InvalidSignature as error:
        raise NotGenuine(
            "The key you trust did not sign this statement: it was changed, or is another site's."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise NotGenuine("This is no statement of a DPAL site, or a part of it is missing.") from error


def _costs_anew(content: bytes, public_key: str) -> list[str] | None:
    """Return what the site's own audit finds beside every cost computed anew; None where it is not installed."""
    try:
        from privacy.ledger.auditor.statement import audit_statement  # noqa: PLC0415 - of the site's program
    except ImportError:
        return None
    verdicts = audit_statement(content, public_key=public_key).verdicts
    return [
        f"{verdict.scope or 'document'}: entry {one.sequence}: {one.field} is {one.stored}, must be {one.expected}"
        for verdict in verdicts
        for one in verdict.differences
    ]


def _faults(account: Mapping[str, Any], key: Ed25519PublicKey) -> Iterator[str]:
    head, limits, spent = "0" * 64, dict[str, int](), dict.fromkeys(SPENT, 0)
    for number, entry in enumerate(account["entries"], start=1):
        text = json.dumps([entry[name] for name in COVERED.split()], ensure_ascii=False)
        if entry["sequence"] != number or entry["previous_hash"] != head:
            yield f"entry {number} does not follow the one before it"
        if hashlib.sha256(text.encode()).hexdigest() != entry["hash"]:
            yield f"entry {number} is not what its hash covers"
        head = entry["hash"]
        if entry["kind"] in ("grant", "limit_change"):
            limits = json.loads(entry["event_json"])
        sign = SIGNS.get(entry["kind"], 0)
        for total, cost in SPENT.items():
            spent[total] += sign * (entry[cost] or 0)
            if entry[total] != spent[total]:
                yield f"entry {number}: {total} is {entry[total]}, the costs add up to {spent[total]}"
        currency = "epsilon" if account["filter"] == "pure" else "rho"
        if sign == 1 and (
            spent[f"{currency}_spent_nano"] > limits[f"{currency}_limit_nano"]
            or spent["delta_spent_atto"] > limits["delta_sum_limit_atto"]
        ):
            yield f"entry {number} spends more than the limit"
    if head != account["chain_head"]:
        yield "the last hash is not the chain head"
    yield from _checkpoint_faults(account, key)


def _checkpoint_faults(account: Mapping[str, Any], key: Ed25519PublicKey) -> Iterator[str]:
    try:
        (point,) = check_ledger([{"checkpoint": account["checkpoint"], "entries": []}], key=key)
    except NotGenuine as error:
        yield str(error)
        return
    leaves = [hashlib.sha256(b"\x00" + bytes.fromhex(one["hash"])).digest() for one in account["entries"]]
    if point.size != len(leaves) or base64.b64decode(point.root) != _root(leaves):
        yield "the signed checkpoint is of other entries"


def _root(leaves: Sequence[bytes]) -> bytes:
    if len(leaves) < 2:
        return leaves[0] if leaves else hashlib.sha256(b"").digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + _root(leaves[:split]) + _root(leaves[split:])).digest()
