"""Whose release it is: an Ed25519 signature over the manifest, which names the digest of every file."""

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from learner.errors import ArtifactCorrupt
from privacy.wording import say

SCHEMA = "dpal-signature/1"
CONTEXT = b"dpal release signature, version 1"


@dataclass(frozen=True, slots=True)
class Signer:
    """A signing key; what it shows of itself is its public half."""

    key: Ed25519PrivateKey

    @classmethod
    def from_secret(cls, secret: str) -> "Signer":
        """Derive the key from a secret text of any length, at least 32 characters."""
        if len(secret) < 32:
            raise ValueError(f"a signing secret has at least 32 characters, got {len(secret)}")
        seed = HKDF(algorithm=SHA256(), length=32, salt=None, info=CONTEXT).derive(secret.encode())
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @property
    def public_key(self) -> str:
        """The 32 bytes of the public key, base64."""
        return base64.b64encode(self.key.public_key().public_bytes_raw()).decode()

    def sign(self, manifest: bytes) -> dict[str, str]:
        """Return what `manifest.sig` holds."""
        return {
            "schema": SCHEMA,
            "algorithm": "Ed25519",
            "public_key": self.public_key,
            "key_id": key_id(self.public_key),
            "signature": base64.b64encode(self.key.sign(manifest)).decode(),
        }

    def __repr__(self) -> str:
        return f"Signer({key_id(self.public_key)})"


def key_id(public_key: str) -> str:
    """Return a short name of a public key: 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(_decoded(public_key)).hexdigest()[:16]


def check_signature(manifest: bytes, signature: bytes, *, public_key: str) -> None:
    """Check that `signature`, the content of `manifest.sig`, was made over `manifest` by the trusted key.

    Raises
    ------
    ArtifactCorrupt
        If the signature cannot be read, names another key, or does not fit.
    """
    try:
        said: dict[str, Any] = json.loads(signature)
        made = base64.b64decode(said["signature"], validate=True)
        claimed = said["public_key"]
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactCorrupt("manifest.sig cannot be read") from error
    if claimed != public_key:
        raise ArtifactCorrupt("manifest.sig was made with another key than the one given")
    try:
        Ed25519PublicKey.from_public_bytes(_decoded(public_key)).verify(made, manifest)
    except InvalidSignature as error:
        raise ArtifactCorrupt("manifest.sig does not fit manifest.json") from error


def _decoded(public_key: str) -> bytes:
    try:
        raw = base64.b64decode(public_key, validate=True)
    except ValueError as error:
        raise ArtifactCorrupt("a public key is 32 bytes in base64") from error
    if len(raw) != 32:
        raise ArtifactCorrupt(say("a public key is 32 bytes in base64, got {got} bytes", got=len(raw)))
    return raw
