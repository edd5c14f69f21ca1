"""Is a release genuine: the site's Ed25519 signature over the manifest, and the manifest's digests of all files."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dpal.errors import NotGenuine
from dpal.files import sha256_of
from dpal.ledger import Checkpoint, check_ledger

MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
NEEDED = ("weights.json", "features.json", "samples.json", "card.md", "privacy.json")


@dataclass(frozen=True)
class Listed:
    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """A manifest whose signature was checked."""

    project: str
    version: int
    files: Mapping[str, Listed]
    checkpoints: tuple[Checkpoint, ...]


def read_manifest(manifest: bytes, signature: bytes, *, public_key: str) -> Manifest:
    try:
        said = json.loads(signature)
        made, claimed = base64.b64decode(said["signature"], validate=True), said["public_key"]
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise NotGenuine(f"{SIGNATURE} or the public key cannot be read: nothing of this release is used.") from error
    if claimed != public_key:
        raise NotGenuine("The release is signed with another key than the one you trust: nothing of it is used.")
    try:
        key.verify(made, manifest)
    except InvalidSignature as error:
        raise NotGenuine(f"{SIGNATURE} does not fit {MANIFEST}: somebody changed one of them.") from error
    try:
        body: dict[str, Any] = json.loads(manifest)
        files = {name: Listed(one["sha256"], int(one["bytes"])) for name, one in body["files"].items()}
        checkpoints = check_ledger(body["ledger"], key=key)
        found = Manifest(body["release"]["project"], int(body["release"]["version"]), files, checkpoints)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotGenuine(f"{MANIFEST} does not say which files of which release there are, or who paid.") from error
    # Names become paths.
    odd = [name for name in files if Path(name).name != name or name.startswith(".")]
    missing = [name for name in NEEDED if name not in files]
    if odd or missing:
        raise NotGenuine(f"{MANIFEST} lacks {', '.join(missing)} or names what is no file: {', '.join(odd)}.")
    return found


def verify_folder(folder: Path, *, public_key: str) -> tuple[Manifest, dict[str, Path]]:
    """Return the manifest and the files of a downloaded folder once all of them are genuine."""
    try:
        signed = (folder / MANIFEST).read_bytes(), (folder / SIGNATURE).read_bytes()
    except OSError as error:
        raise NotGenuine(f"{folder} lacks {MANIFEST} or {SIGNATURE}: it is no complete release.") from error
    manifest = read_manifest(*signed, public_key=public_key)
    files = {name: folder / name for name in manifest.files}
    missing = sorted(name for name, path in files.items() if not path.is_file())
    if missing:
        raise NotGenuine(f"{folder} lacks {', '.join(missing)}: it is no complete release.")
    changed = sorted(name for name, path in files.items() if sha256_of(path) != manifest.files[name].sha256)
    if changed:
        raise NotGenuine(f"{', '.join(changed)} of {folder} differs from what was signed: nothing of it is used.")
    return manifest, files
