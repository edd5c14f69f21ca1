"""Whose release it is: an Ed25519 signature over the manifest, which names the digest of every file."""

import base64
import json
from dataclasses import dataclass
from typing import Any

from learner.errors import ArtifactCorrupt
from privacy.ledger import keys
from privacy.ledger.keys import SiteKey

SCHEMA = "dpal-signature/1"


@dataclass(frozen=True, slots=True)
class Signer:
    key: SiteKey

    @classmethod
    def from_secret(cls, secret: str) -> "Signer":
        return cls(SiteKey.from_secret(secret))

    @property
    def public_key(self) -> str:
        return self.key.public_key

    def sign(self, manifest: bytes) -> dict[str, str]:
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
    _decoded(public_key)
    return keys.key_id(public_key)


def check_signature(manifest: bytes, signature: bytes, *, public_key: str) -> None:
    try:
        said: dict[str, Any] = json.loads(signature)
        made = base64.b64decode(said["signature"], validate=True)
        claimed = said["public_key"]
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactCorrupt("manifest.sig cannot be read") from error
    if claimed != public_key:
        raise ArtifactCorrupt("manifest.sig was made with another key")
    if not keys.is_signed(manifest, made, public_key=_decoded(public_key)):
        raise ArtifactCorrupt("manifest.sig does not fit manifest.json")


def _decoded(public_key: str) -> bytes:
    try:
        return keys.decoded_key(public_key)
    except ValueError as error:
        raise ArtifactCorrupt(str(error)) from error
