"""Files that appear whole or not at all, and what they hash to."""

import hashlib
import os
import tempfile
from pathlib import Path

BLOCK_BYTES = 2**20


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def write_whole(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file that takes its name once every byte of it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Made with mode 0600, so that a secret is never readable by others, not even for a moment.
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
