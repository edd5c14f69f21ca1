"""Whose release it is: an Ed25519 signature over the manifest, which names the digest of every file."""

import base64
import json
from dataclasses import dataclass
from typing import Any

from learner.errors import ArtifactCorrupt
from learner.releases.artifacts.model_signature import ModelKey
from privacy.ledger import keys
from privacy.ledger.keys import SiteKey

SCHEMA = "dpal-signature/1"


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs releases with the site's keys; what it shows of itself is their public halves."""

    key: SiteKey
    models: ModelKey

    @classmethod
    def from_secret(cls, secret: str) -> "Signer":
        """Derive both keys from a secret text of any length, at least 32 characters."""
        return cls(SiteKey.from_secret(secret), ModelKey.from_secret(secret))

    @property
    def public_key(self) -> str:
        """The 32 bytes of the public key, base64."""
        return self.key.public_key

    def sign(self, manifest: bytes) -> dict[str, str]:
        """Return what `manifest.sig` holds."""
        return {
            "schema": SCHEMA,
            "algorithm": "Ed25519",
            "public_key": self.public_key,
            "key_id": signer_key_id(self.public_key),
            "signature": base64.b64encode(self.key.sign(manifest)).decode(),
        }

    def __repr__(self) -> str:
        return f"Signer({signer_key_id(self.public_key)})"


def signer_key_id(public_key: str) -> str:
    """Return a short name of a public key: 16 hexadecimal digits of its SHA-256."""
    _decoded(public_key)
    return keys.key_id(public_key)


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
    if not keys.is_signed(manifest, made, public_key=_decoded(public_key)):
        raise ArtifactCorrupt("manifest.sig does not fit manifest.json")


def _decoded(public_key: str) -> bytes:
    try:
        return keys.decoded_key(public_key)
    except ValueError as error:
        raise ArtifactCorrupt(str(error)) from error
