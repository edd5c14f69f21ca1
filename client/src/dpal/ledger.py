"""Ledger behind a release: signed checkpoints of its accounts, and proofs that what was paid is in them."""

# C2SP, "signed-note" and "tlog-checkpoint"; RFC 9162, section 2.1.3.2.

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dpal.errors import NotGenuine

DASH = "\u2014 "
ED25519 = b"\x01"


@dataclass(frozen=True)
class Checkpoint:
    """An account's log when a release was made; a witness who saw another one has caught the site."""

    origin: str
    size: int
    root: str


def check_ledger(places: Sequence[Mapping[str, Any]], *, key: Ed25519PublicKey) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of a manifest once the key signed each and every entry named is in its log."""
    found = []
    for place in places:
        checkpoint = _opened(str(place["checkpoint"]), key)
        root = base64.b64decode(checkpoint.root, validate=True)
        for entry in place["entries"]:
            leaf = hashlib.sha256(b"\x00" + bytes.fromhex(entry["hash"])).digest()
            proof = [base64.b64decode(one, validate=True) for one in entry["proof"]]
            if _climbed(leaf, int(entry["sequence"]) - 1, checkpoint.size, proof) != root:
                raise NotGenuine(
                    f"Entry {entry['sequence']} of {checkpoint.origin} is not in the ledger that was signed."
                )
        found.append(checkpoint)
    return tuple(found)


def _opened(note: str, key: Ed25519PublicKey) -> Checkpoint:
    """Read a signed note; signatures of others are ignored."""
    body, _, signatures = note.rpartition("\n\n")
    text = body + "\n"
    origin, size, root = body.split("\n")[:3]
    public = key.public_bytes_raw()
    named = hashlib.sha256(origin.encode() + b"\n" + ED25519 + public).digest()[:4]
    for line in signatures.splitlines():
        signer, _, encoded = line.removeprefix(DASH).rpartition(" ")
        made = base64.b64decode(encoded, validate=True)
        if signer == origin and made[:4] == named:
            try:
                key.verify(made[4:], text.encode())
            except InvalidSignature:
                break
            return Checkpoint(origin, int(size), root)
    raise NotGenuine(f"The checkpoint of {origin} is not signed by the key you trust: nothing of this release is used.")


def _climbed(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """Return the root that a proof leads to from a leaf; nothing where it has another length than it must."""
    if not 0 <= index < size:
        return b""
    node, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return b""
        if node & 1 or node == last:
            found = hashlib.sha256(b"\x01" + sibling + found).digest()
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            found = hashlib.sha256(b"\x01" + found + sibling).digest()
        node, last = node >> 1, last >> 1
    return found if last == 0 else b""
