"""Cosignatures: a witness's own word, with a time, that a checkpoint follows all that it saw before.

References
----------
.. [1] C2SP, "tlog-cosignature", https://c2sp.org/tlog-cosignature.
"""

import base64
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from privacy.audit.keys import SiteKey, is_signed
from privacy.audit.notes import DASH, NoteRefused

VERSION = "cosignature/v1"
COSIGNED = b"\x04"
HASH_BYTES, TIME_BYTES = 4, 8


@dataclass(frozen=True, slots=True)
class Cosigner:
    """A witness's name and key.

    Attributes
    ----------
    name : str
        As others know the witness: no space and no plus.
    key : SiteKey
        Its own, made from a secret of its host and of nothing of the site.
    """

    name: str
    key: SiteKey

    def __post_init__(self) -> None:
        """Refuse what cannot stand in a line of signatures."""
        if not self.name or "+" in self.name or any(letter.isspace() for letter in self.name):
            raise ValueError(f"the name of a witness has no space and no plus, got {self.name!r}")

    @property
    def verifier(self) -> str:
        """The public key as other programs take it: name, key hash, and key."""
        public = self.key.public_bytes
        return f"{self.name}+{_hash(self.name, public).hex()}+{base64.b64encode(COSIGNED + public).decode()}"

    def cosign(self, note: str, *, at: datetime) -> str:
        """Return a signed checkpoint with one more line: this witness's, of this moment."""
        seconds = int(at.timestamp())
        made = self.key.sign(_message(_text(note), seconds))
        line = _hash(self.name, self.key.public_bytes) + seconds.to_bytes(TIME_BYTES, "big") + made
        return f"{note}{DASH}{self.name} {base64.b64encode(line).decode()}\n"


def cosigned_at(note: str, *, verifier: str) -> datetime:
    """Return when a witness cosigned a checkpoint, the latest time where it did so more than once.

    Raises
    ------
    NoteRefused
        If the witness has not cosigned it.
    ValueError
        If `verifier` is no key of a witness.
    """
    name, public = _key_of(verifier)
    text, wanted, found = _text(note), _hash(name, public), []
    for line in note[len(text) + 1 :].splitlines():
        signer, _, encoded = line.removeprefix(DASH).partition(" ")
        try:
            raw = base64.b64decode(encoded, validate=True)
        except ValueError as error:
            raise NoteRefused("a line of signatures cannot be read") from error
        if signer != name or raw[:HASH_BYTES] != wanted:
            continue
        time, made = raw[HASH_BYTES : HASH_BYTES + TIME_BYTES], raw[HASH_BYTES + TIME_BYTES :]
        seconds = int.from_bytes(time, "big")
        if not is_signed(_message(text, seconds), made, public_key=public):
            raise NoteRefused(f"the cosignature of {name} does not fit")
        found.append(seconds)
    if not found:
        raise NoteRefused(f"{name} has not cosigned it")
    return datetime.fromtimestamp(max(found), UTC)


def _message(text: str, seconds: int) -> bytes:
    return f"{VERSION}\ntime {seconds}\n{text}".encode()


def _text(note: str) -> str:
    body, blank, _ = note.rpartition("\n\n")
    if not blank:
        raise NoteRefused("a note is a text, an empty line, and signatures")
    return body + "\n"


def _hash(name: str, public_key: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + COSIGNED + public_key).digest()[:HASH_BYTES]


def _key_of(verifier: str) -> tuple[str, bytes]:
    name, _, rest = verifier.partition("+")
    named, _, encoded = rest.partition("+")
    raw = base64.b64decode(encoded, validate=True)
    if raw[:1] != COSIGNED or _hash(name, raw[1:]).hex() != named:
        raise ValueError("the key of a witness is its name, the hash of name and key, and the key, with a plus between")
    return name, raw[1:]
