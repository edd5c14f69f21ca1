"""The stored files of releases, opened once their bytes match their digests, and the key they are signed with."""

import hashlib
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from django.conf import settings
from django.core.files.storage import default_storage

from annotation.errors import FileDamaged
from annotation.work.services import files
from learner.errors import ArtifactCorrupt
from learner.models import ModelRelease
from learner.releases.artifacts.signatures import Signer

logger = logging.getLogger(__name__)
KEPT_DIGESTS = 10_000
_digested: dict[tuple[int, ...], str] = {}


def signer() -> Signer:
    return Signer.from_secret(settings.SIGNING_KEY)


def folder_of(release: ModelRelease) -> Path:
    return _path_of(release.folder)


@contextmanager
def files_at_hand(release: ModelRelease) -> Iterator[Path]:
    """Give a folder of this host with a release's files as they are stored, wherever that is."""
    if files.are_local():
        yield folder_of(release)
        return
    with TemporaryDirectory(prefix="dpal-release-") as folder:
        for name in files.names_in(release.folder):
            with default_storage.open(name) as source, (Path(folder) / name.rpartition("/")[2]).open("wb") as target:
                shutil.copyfileobj(source, target)
        yield Path(folder)


def open_file(*, release: ModelRelease, name: str) -> BinaryIO:
    try:
        file = _open_stored(release, name) if name in release.digests else None
    except (OSError, FileDamaged):
        file = None
    if file is None:
        raise ArtifactCorrupt(f"release {release.pk} has no readable file of that name")
    status = os.fstat(file.fileno())
    # The kernel sets the change time, so what was digested once need not be again for every part of a download.
    unchanged = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if _digested.get(unchanged) != release.digests[name]:
        if hashlib.file_digest(file, "sha256").hexdigest() != release.digests[name]:
            file.close()
            raise ArtifactCorrupt(f"a file of release {release.pk} does not match its digest")
        if len(_digested) >= KEPT_DIGESTS:
            _digested.clear()
        _digested[unchanged] = release.digests[name]
        file.seek(0)
    return file


def _open_stored(release: ModelRelease, name: str) -> BufferedReader:
    return files.open_stored(f"{release.folder}/{name}", release.digests[name], lambda path: path.open("rb"))


def card_of(*, release: ModelRelease) -> str | None:
    try:
        with open_file(release=release, name="card.md") as file:
            return file.read().decode()
    except ArtifactCorrupt:
        logger.error("the card of release %s does not match its digest", release.pk)
        return None


def _path_of(name: str) -> Path:
    return Path(default_storage.path(name))
