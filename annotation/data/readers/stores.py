"""The files of a table where they lie: listed, read in part, and opened; nothing is ever written there."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, Protocol, cast

from annotation.errors import InvalidUpload
from privacy.wording import as_message

SUFFIX = ".parquet"
# Of an Iceberg table.
METADATA_FOLDER, METADATA_SUFFIX = "metadata", ".metadata.json"
METADATA_ENDINGS = (METADATA_SUFFIX, f"{METADATA_SUFFIX}.gz")
# Names that writers keep for themselves, such as `_SUCCESS`.
HIDDEN = ("_", ".")
MOST_FILES = 10_000
NOT_ALLOWED = as_message("address: lies outside what the operator allows this project in POOL_SOURCES")
LINK = as_message("address: a link stands there; register the place that it leads to")
READ_AHEAD = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a table: its name below the address, its bytes, and what changes when it is written again."""

    name: str
    size: int
    version: str


class TableStore(Protocol):
    def listed(self) -> list[StoredFile]:
        """Return the Parquet files, sorted by name; `InvalidUpload` names what stands in the way."""

    def names_in(self, folder: str, ends: tuple[str, ...]) -> list[str]:
        """Return the names in a folder of the table that end so, sorted; none where there is no such folder."""

    def find(self, name: str) -> StoredFile:
        """Return a file as it stands now, or raise `FileNotFoundError`."""

    def read(self, file: StoredFile, start: int, length: int) -> bytes:
        """Return some of its bytes."""

    def opened(self, file: StoredFile) -> BufferedIOBase:
        """Open it for reading at any place."""


class FolderTable:
    """A folder, or a single file, below one that the operator allows; no link is followed."""

    def __init__(self, place: Path, root: Path) -> None:
        self._place, self._root = place, root

    def listed(self) -> list[StoredFile]:
        self._refuse_detour()
        if not self._place.is_dir():
            if self._place.suffix != SUFFIX or not self._place.exists():
                raise InvalidUpload("address: names neither a folder nor a Parquet file (.parquet) that can be read")
            return [self.find("")]
        names = []
        for name in self._names():
            names.append(name)
            refuse_too_many(names)
        return [self.find(name) for name in sorted(names)]

    def names_in(self, folder: str, ends: tuple[str, ...]) -> list[str]:
        self._refuse_detour(folder)
        if not (self._place / folder).is_dir():
            return []
        return sorted(each.name for each in (self._place / folder).iterdir() if each.name.endswith(ends))

    def find(self, name: str) -> StoredFile:
        found = os.lstat(self._place / name)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidUpload(LINK)
        return StoredFile(name, found.st_size, str(found.st_mtime_ns))

    def read(self, file: StoredFile, start: int, length: int) -> bytes:
        with self.opened(file) as opened:
            opened.seek(start)
            return opened.read(length)

    def opened(self, file: StoredFile) -> BufferedIOBase:
        """Open it; the last name is no link, and all before it lead below the root."""
        self._refuse_detour(file.name)
        place = self._place / file.name
        return os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb")

    def _names(self) -> Iterator[str]:
        for folder, below, files in os.walk(self._place, onerror=_raise):
            if any((Path(folder) / name).is_symlink() for name in below):
                raise InvalidUpload(LINK)
            below[:] = [name for name in below if not name.startswith(HIDDEN)]
            for name in files:
                if name.endswith(SUFFIX) and not name.startswith(HIDDEN):
                    yield str((Path(folder) / name).relative_to(self._place))

    def _refuse_detour(self, name: str = "") -> None:
        place = Path(os.path.realpath(self._place / name))
        if not place.is_relative_to(os.path.realpath(self._root)):
            raise InvalidUpload(NOT_ALLOWED)


class BucketTable:
    """Objects of a bucket below a prefix, or a single one, read by whatever storage knows the key to it."""

    def __init__(self, storage: Any, bucket: str, key: str) -> None:
        self._storage, self._bucket, self._key = storage, bucket, key

    def listed(self) -> list[StoredFile]:
        if self._key.endswith(SUFFIX):
            return [self.find("")]
        prefix = f"{self._key}/" if self._key else ""
        found = []
        for key, size, version in self._storage.objects_below(self._bucket, prefix):
            name = key.removeprefix(prefix)
            if name.endswith(SUFFIX) and not any(part.startswith(HIDDEN) for part in name.split("/")):
                found.append(StoredFile(name, size, version))
                refuse_too_many(found)
        return sorted(found, key=lambda file: file.name)

    def names_in(self, folder: str, ends: tuple[str, ...]) -> list[str]:
        prefix = f"{self._key_of(folder)}/"
        found = (key.removeprefix(prefix) for key, _, _ in self._storage.objects_below(self._bucket, prefix))
        return sorted(name for name in found if name.endswith(ends) and "/" not in name)

    def find(self, name: str) -> StoredFile:
        size, version = self._storage.object_version(self._bucket, self._key_of(name))
        return StoredFile(name, size, version)

    def read(self, file: StoredFile, start: int, length: int) -> bytes:
        return cast(
            bytes, self._storage.object_part(self._bucket, self._key_of(file.name), start, length, file.version)
        )

    def opened(self, file: StoredFile) -> BufferedIOBase:
        return BufferedReader(_Ranges(self, file), READ_AHEAD)

    def _key_of(self, name: str) -> str:
        return "/".join(filter(None, (self._key, name)))


class _Ranges(RawIOBase):
    """An object as a file, of which each read fetches what it asks for."""

    def __init__(self, table: BucketTable, file: StoredFile) -> None:
        self._table, self._file, self._place = table, file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._file.size}[whence]
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._file.size - self._place)
        if length <= 0:
            return 0
        content = self._table.read(self._file, self._place, length)
        buffer[: len(content)] = content
        self._place += len(content)
        return len(content)


def refuse_too_many(files: list[Any]) -> None:
    if len(files) > MOST_FILES:
        raise InvalidUpload(as_message("address: holds more than {most:,} Parquet files", most=MOST_FILES))


def _raise(error: OSError) -> None:
    raise error
