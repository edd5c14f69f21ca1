"""Checkpoints of a log as signed notes: its name, its length and its root, readable by anybody's witness."""

# [1] C2SP, "signed-note" and "tlog-checkpoint", https://c2sp.org/signed-note, https://c2sp.org/tlog-checkpoint.

import base64
import hashlib
from dataclasses import dataclass
from urllib.parse import quote

from privacy.ledger.keys import SiteKey, is_signed

DASH = "\u2014 "
ED25519 = b"\x01"
ROOT_BYTES = 32
LONGEST_NOTE = 65_536
MOST_SIGNATURES = 64
BEYOND_ASCII_CONTROLS = " "


class NoteRefused(Exception):
    """A note cannot be read, or no key that is trusted has signed it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A log of a name at one length: `root` is that of the RFC 6962 tree over its entries, 32 bytes."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"

    @classmethod
    def from_text(cls, text: str) -> "Checkpoint":
        """Read the text of a note, or raise `NoteRefused`; lines after the third say something else."""
        lines = text.split("\n")
        if len(lines) < 4 or lines.pop() or not all(lines):
            raise NoteRefused("a checkpoint has at least three lines, none of them empty")
        origin, size, root = lines[:3]
        if not (size.isascii() and size.isdecimal()) or str(int(size[:20])) != size:
            raise NoteRefused("the second line of a checkpoint is a number without leading zeroes")
        return cls(origin, int(size), _bytes_of(root, ROOT_BYTES))


def origin_of(site: str, scope: str) -> str:
    return f"{site}/{quote(scope, safe='/:-._~')}"


def key_hash(name: str, public_key: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + ED25519 + public_key).digest()[:4]


def verifier_key(name: str, public_key: bytes) -> str:
    """Return a key as other programs for signed notes take it: name, key hash, and key."""
    return f"{name}+{key_hash(name, public_key).hex()}+{base64.b64encode(ED25519 + public_key).decode()}"


def signed_note(text: str, *, name: str, key: SiteKey) -> str:
    """Return a text with the signature of a key under a name; `ValueError` if they cannot stand in a note."""
    if not text.endswith("\n") or any(letter < BEYOND_ASCII_CONTROLS and letter != "\n" for letter in text):
        raise ValueError("the text of a note ends with a newline and has no other control character")
    if not name or "+" in name or any(letter.isspace() for letter in name):
        raise ValueError(f"the name of a key has no space and no plus, got {name!r}")
    signature = key_hash(name, key.public_bytes) + key.sign(text.encode())
    return f"{text}\n{DASH}{name} {base64.b64encode(signature).decode()}\n"


def open_note(note: str, *, name: str, public_key: bytes) -> str:
    """Return the text of a note that the key signed under the name; `NoteRefused` if it is malformed or not signed."""
    if len(note) > LONGEST_NOTE or any(letter < BEYOND_ASCII_CONTROLS and letter != "\n" for letter in note):
        raise NoteRefused("a note is short and has no control characters but newlines")
    body, blank, signatures = note.rpartition("\n\n")
    lines = signatures.split("\n")
    if not blank or lines.pop() or not lines or len(lines) > MOST_SIGNATURES:
        raise NoteRefused("a note is a text, an empty line, and signatures")
    text, wanted, found = body + "\n", key_hash(name, public_key), False
    for line in lines:
        signer, _, encoded = line.removeprefix(DASH).partition(" ")
        if not line.startswith(DASH) or not signer or not encoded:
            raise NoteRefused("a line of signatures cannot be read")
        signature = _bytes_of(encoded)
        if signer != name or signature[:4] != wanted:
            continue
        if not is_signed(text.encode(), signature[4:], public_key=public_key):
            raise NoteRefused(f"the signature of {name} does not fit")
        found = True
    if not found:
        raise NoteRefused(f"no signature of {name} by the trusted key")
    return text


def sign_checkpoint(checkpoint: Checkpoint, key: SiteKey) -> str:
    return signed_note(checkpoint.text, name=checkpoint.origin, key=key)


def open_checkpoint(note: str, *, public_key: bytes, origin: str | None = None) -> Checkpoint:
    """Return the checkpoint of a note that the key has signed; with `origin`, of that log alone; else `NoteRefused`."""
    claimed = note.partition("\n")[0]
    if origin is not None and claimed != origin:
        raise NoteRefused(f"a checkpoint of {claimed}, not of {origin}")
    return Checkpoint.from_text(open_note(note, name=claimed, public_key=public_key))


def _bytes_of(encoded: str, length: int | None = None) -> bytes:
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError as error:
        raise NoteRefused("a note's hashes and signatures are base64") from error
    if length is not None and len(raw) != length:
        raise NoteRefused(f"a root is {length} bytes, got {len(raw)}")
    return raw
