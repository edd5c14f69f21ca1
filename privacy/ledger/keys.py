"""The key a site signs with, derived from a secret of any length, and its public half."""

import base64
import hashlib
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

CONTEXT = b"dpal release signature, version 1"
SHORTEST_SECRET = 32
KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class SiteKey:
    """A site's Ed25519 key; what it shows of itself is its public half.

    What it signs can never be taken for something else: a manifest begins with a brace, a note with its origin, and a
    statement's signature with the name of its format.
    """

    key: Ed25519PrivateKey

    @classmethod
    def from_secret(cls, secret: str) -> "SiteKey":
        return cls(Ed25519PrivateKey.from_private_bytes(derived(secret, CONTEXT, length=KEY_BYTES)))

    @property
    def public_key(self) -> str:
        return base64.b64encode(self.public_bytes).decode()

    @property
    def public_bytes(self) -> bytes:
        return self.key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self.key.sign(message)

    def __repr__(self) -> str:
        return f"SiteKey({key_id(self.public_key)})"


def derived(secret: str, context: bytes, *, length: int) -> bytes:
    """Return key material for one purpose; knowing that of one says nothing about another's.

    Raises
    ------
    ValueError
        If the secret is short enough to be guessed.
    """
    if len(secret) < SHORTEST_SECRET:
        raise ValueError(f"a signing secret has at least {SHORTEST_SECRET} characters, got {len(secret)}")
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=context).derive(secret.encode())


def key_id(public_key: str) -> str:
    return hashlib.sha256(decoded_key(public_key)).hexdigest()[:16]


def is_signed(message: bytes, signature: bytes, *, public_key: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def decoded_key(public_key: str) -> bytes:
    """Return the bytes of a public key in base64."""
    try:
        raw = base64.b64decode(public_key, validate=True)
    except ValueError as error:
        raise ValueError("a public key is 32 bytes in base64") from error
    if len(raw) != KEY_BYTES:
        raise ValueError(f"a public key is 32 bytes in base64, got {len(raw)} bytes")
    return raw
