"""Verified copies of stored files on this host's disk, shared by its processes, where files are stored elsewhere."""

import fcntl
import hashlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from django.conf import settings
from django.core.files.storage import default_storage

from annotation.errors import FileDamaged, StorageAway
from privacy.wording import in_english

if TYPE_CHECKING:
    from annotation.work.object_storage import ObjectStorage

logger = logging.getLogger(__name__)
SWEEP_EVERY_SECONDS = 300
# Written to more recently, it is still on its way.
LEFT_AFTER_SECONDS = 3600
LOCKS = 64
_sweeping = threading.Lock()


def copy_of(name: str, sha256: str) -> Path:
    """Return the path of a verified copy of a stored file; it may go at any moment, but not what is open of it."""
    sweep_from_now_on()
    path = _folder() / "files" / f"{name}@{sha256 or 'unverified'}"
    if _touch(path):
        return path
    with _locked(name):
        if not _touch(path):
            _fetch(name, sha256, path)
    return path


@contextmanager
def workspace() -> Iterator[Path]:
    """Give a folder on the copies' disk, removed afterwards with all that is left in it."""
    folder = _folder() / "partial" / secrets.token_hex(8)
    folder.mkdir(parents=True, mode=0o700)
    try:
        yield folder
    finally:
        for left in folder.iterdir():
            left.unlink(missing_ok=True)
        folder.rmdir()


def drop(name: str) -> None:
    path = _folder() / "files" / name
    for copy in path.parent.glob("*@*"):
        if copy.name.rpartition("@")[0] == path.name:
            copy.unlink(missing_ok=True)


def sweep() -> int:
    """Delete copies whose file is not stored any more, and what killed processes left; return how many those were."""
    gone = 0
    for copy in _copies():
        name = str(copy.relative_to(_folder() / "files")).rpartition("@")[0]
        if not default_storage.exists(name):
            copy.unlink(missing_ok=True)
            gone += 1
    for left in _folder().glob("partial/*/*"):
        with suppress(FileNotFoundError):
            if left.stat().st_mtime < time.time() - LEFT_AFTER_SECONDS:
                left.unlink()
                gone += 1
    return gone


def sweep_from_now_on() -> None:
    if _sweeping.acquire(blocking=False):
        threading.Thread(target=_sweep_for_ever, name="sweep of file copies", daemon=True).start()


def _sweep_for_ever() -> None:
    while True:
        try:
            sweep()
        except (OSError, StorageAway):
            logger.warning("copies of files were not swept, trying again")
        time.sleep(SWEEP_EVERY_SECONDS)


def _fetch(name: str, sha256: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with workspace() as folder:
        with (folder / "file").open("w+b") as file:
            os.fchmod(file.fileno(), 0o600)
            cast("ObjectStorage", default_storage).fetch(name, cast(BinaryIO, file))
            size = file.tell()
            file.seek(0)
            if sha256 and hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                raise FileDamaged(in_english("{name} does not match its digest", name=path.name.rpartition("@")[0]))
        _make_room(size)
        (folder / "file").replace(path)


def _make_room(size: int) -> None:
    """Delete the least recently used copies until so many bytes fit; a file larger than all room has it alone."""
    with _locked("all"):
        found = []
        for copy in _copies():
            with suppress(FileNotFoundError):
                status = copy.stat()
                found.append((status.st_mtime_ns, status.st_size, copy))
        used = size + sum(each[1] for each in found)
        for _, freed, copy in sorted(found):
            if used <= settings.FILE_CACHE_BYTES:
                return
            copy.unlink(missing_ok=True)
            used -= freed


def _touch(path: Path) -> bool:
    """Note that a copy is used; false where there is none."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def _copies() -> list[Path]:
    return [path for path in (_folder() / "files").rglob("*@*") if path.is_file()]


def _folder() -> Path:
    return settings.FILE_CACHE_DIR


@contextmanager
def _locked(name: str) -> Iterator[None]:
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % LOCKS if name != "all" else LOCKS
    folder = _folder() / "locks"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / str(number)).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
