"""Signature of a release by the standard for models: `model.sig`, which the OpenSSF's `model_signing` verifies."""

# An in-toto statement (v1) of the SHA-256 of every other file, in a DSSE envelope (v1.0), in a Sigstore bundle (v0.3),
# signed by an elliptic curve key of the site: those programs know no Ed25519. Deterministic ECDSA (RFC 6979) gives the
# same bytes for the same files. https://github.com/ossf/model-signing-spec, v1.0.

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from learner.errors import ArtifactCorrupt
from privacy.ledger.keys import derived

MODEL_SIGNATURE = "model.sig"
CONTEXT = b"dpal model signature, version 1"
# 128 bits more than the order has, so that the remainder is even to 2^-128 (FIPS 186-5, A.2.1).
SEED_BYTES = 48
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://model_signing/signature/v1.0"


@dataclass(frozen=True, slots=True)
class ModelKey:
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def from_secret(cls, secret: str) -> "ModelKey":
        seed = int.from_bytes(derived(secret, CONTEXT, length=SEED_BYTES), "big")
        return cls(ec.derive_private_key(seed % (ORDER - 1) + 1, ec.SECP256R1()))

    @property
    def public_key(self) -> str:
        return _pem(self.key.public_key())

    def bundle(self, digests: Mapping[str, str], *, name: str) -> bytes:
        """Return `model.sig` for files of these SHA-256 digests, in hexadecimal, by name."""
        payload = json.dumps(_statement(digests, name=name), sort_keys=True).encode()
        signature = self.key.sign(_encoded(payload), ec.ECDSA(SHA256(), deterministic_signing=True))
        body = {
            "mediaType": BUNDLE,
            "verificationMaterial": {
                "publicKey": {"hint": hashlib.sha256(self.public_key.encode()).hexdigest()},
                "tlogEntries": [],
            },
            "dsseEnvelope": {
                "payload": base64.b64encode(payload).decode(),
                "payloadType": PAYLOAD,
                "signatures": [{"sig": base64.b64encode(signature).decode(), "keyid": ""}],
            },
        }
        return (json.dumps(body, sort_keys=True, indent=1) + "\n").encode()

    def __repr__(self) -> str:
        return "ModelKey()"


def check_bundle(bundle: bytes, digests: Mapping[str, str], *, public_key: str) -> None:
    """Check that `bundle`, the content of `model.sig`, signs files of exactly these digests."""
    try:
        envelope = json.loads(bundle)["dsseEnvelope"]
        payload = base64.b64decode(envelope["payload"], validate=True)
        (signature,) = (base64.b64decode(each["sig"], validate=True) for each in envelope["signatures"])
        key = serialization.load_pem_public_key(public_key.encode())
        if not isinstance(key, ec.EllipticCurvePublicKey) or envelope["payloadType"] != PAYLOAD:
            raise ValueError("no statement by a key on an elliptic curve")
        key.verify(signature, _encoded(payload), ec.ECDSA(SHA256()))
        resources = json.loads(payload)["predicate"]["resources"]
        signed = {each["name"]: each["digest"] for each in resources}
    except InvalidSignature as error:
        raise ArtifactCorrupt(f"{MODEL_SIGNATURE} was made with another key") from error
    except (ValueError, KeyError, TypeError, UnsupportedAlgorithm) as error:
        raise ArtifactCorrupt(f"{MODEL_SIGNATURE} cannot be read") from error
    if signed != dict(digests):
        different = sorted(each for each in signed.keys() | digests.keys() if signed.get(each) != digests.get(each))
        raise ArtifactCorrupt(f"{MODEL_SIGNATURE}: {', '.join(different)} do not match the manifest")


def _statement(digests: Mapping[str, str], *, name: str) -> dict[str, Any]:
    ordered = sorted(digests.items())
    root = hashlib.sha256(b"".join(bytes.fromhex(digest) for _, digest in ordered)).hexdigest()
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": root}}],
        "predicateType": PREDICATE,
        "predicate": {
            "serialization": {
                "method": "files",
                "hash_type": "sha256",
                "allow_symlinks": False,
                "ignore_paths": [MODEL_SIGNATURE],
            },
            "resources": [{"name": each, "algorithm": "sha256", "digest": digest} for each, digest in ordered],
        },
    }


def _encoded(payload: bytes) -> bytes:
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(payload), payload)


def _pem(key: ec.EllipticCurvePublicKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.PEM, form).decode()
