"""Stored files as paths, parts and folders, wherever they are stored; from a bucket they are copied to disk first."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from django.core.files import File
from django.core.files.storage import FileSystemStorage, default_storage

from annotation.work import file_cache

if TYPE_CHECKING:
    from annotation.work.object_storage import ObjectStorage

T = TypeVar("T")
TRIES = 3


def are_local() -> bool:
    """Say whether files lie on a file system that this process sees."""
    return isinstance(default_storage, FileSystemStorage)


def open_stored(name: str, sha256: str, opener: Callable[[Path], T]) -> T:
    """Return what `opener` makes of the file's path on this host; only a copy is held against the digest here."""
    if are_local():
        return opener(Path(default_storage.path(name)))
    for _ in range(TRIES):
        path = file_cache.copy_of(name, sha256)
        try:
            return opener(path)
        except FileNotFoundError:
            # Another process needed the room in this very moment.
            continue
    raise FileNotFoundError(name)


def begin() -> None:
    """Have a process that begins to serve or work see to the copies on this host."""
    if not are_local():
        file_cache.sweep_from_now_on()


def reader_of(path: Path) -> Callable[[int, int], bytes]:
    def read(start: int, length: int) -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(length)

    return read


def read_bytes(name: str, start: int, length: int) -> bytes:
    if are_local():
        return reader_of(Path(default_storage.path(name)))(start, length)
    return cast("ObjectStorage", default_storage).read_part(name, start, length)


@contextmanager
def written_file(name: str) -> Iterator[Path]:
    """Give a path to write a file to, whole or not at all; it replaces what is stored under the name."""
    if are_local():
        path = Path(default_storage.path(name))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        yield path
        return
    with file_cache.workspace() as folder:
        path = folder / "file"
        yield path
        store_file(path, name)


def store_file(path: Path, name: str) -> None:
    with path.open("rb") as file:
        default_storage.save(name, File(file))


def exists(name: str) -> bool:
    return default_storage.exists(name)


def delete(name: str) -> None:
    default_storage.delete(name)
    if not are_local():
        file_cache.drop(name)


def names_in(folder: str) -> Iterator[str]:
    try:
        folders, files = default_storage.listdir(folder)
    except FileNotFoundError:
        return
    yield from (f"{folder}/{name}" for name in sorted(files))
    for inner in sorted(folders):
        yield from names_in(f"{folder}/{inner}")


def delete_folder(folder: str) -> None:
    if are_local():
        shutil.rmtree(default_storage.path(folder), ignore_errors=True)
        return
    for name in list(names_in(folder)):
        delete(name)
