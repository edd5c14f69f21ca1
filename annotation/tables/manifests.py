"""Manifests of an Iceberg table: Avro files that name its data files, read in a limited process.

A manifest repeats single texts as bounds of columns, like a footer. Of an entry nothing is kept but what `Entry` has.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any, BinaryIO

import fastavro

from annotation.errors import InvalidUpload
from annotation.work.limits import Answer, Job, LimitReached, Limits, run
from privacy.wording import as_message

MOST_BYTES = 32 * 1024 * 1024
DELETED = 2
DAMAGED = as_message("address: the metadata of the Iceberg table cannot be read")
OTHER_CODEC = as_message(
    "address: the manifests of the Iceberg table are not compressed by deflate; set its write.avro.compression-codec "
    "to gzip and rewrite them"
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest that a snapshot lists: where it is, and whether its entries delete rows of other files."""

    path: str
    deletes: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that a manifest has in its snapshot."""

    path: str
    kind: str
    size: int
    row_count: int
    encrypted: bool


def manifests_of(content: bytes) -> list[Manifest]:
    """Return what a list of manifests names; `InvalidUpload` where it cannot be read."""
    return [Manifest(each["path"], each["deletes"]) for each in _answer(read_manifests, content)]


def manifest_entries(content: bytes) -> list[Entry]:
    """Return the files of a manifest that were not taken out of it; `InvalidUpload` where it cannot be read."""
    return [Entry(**each) for each in _answer(read_entries, content)]


def _answer(job: Job, content: bytes) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = next(run(job, BytesIO(content), Limits()))[0]["found"]
    except LimitReached as reached:
        raise InvalidUpload(
            as_message("address: the metadata of the Iceberg table {reason}", reason=reached.reason)
        ) from None
    return found


def read_manifests(file: BinaryIO) -> Iterator[Answer]:
    """Yield what a list of manifests names; a job of a limited process."""
    with _as_damaged():
        found = [
            {"path": str(each["manifest_path"]), "deletes": each.get("content") not in (None, 0)}
            for each in _records(file)
        ]
    yield {"found": found}, b""


def read_entries(file: BinaryIO) -> Iterator[Answer]:
    """Yield the files of a manifest; a job of a limited process."""
    with _as_damaged():
        found = [asdict(_entry(each["data_file"])) for each in _records(file) if each["status"] != DELETED]
    yield {"found": found}, b""


def _entry(file: Any) -> Entry:
    return Entry(
        path=str(file["file_path"]),
        kind=file["file_format"].upper(),
        size=int(file["file_size_in_bytes"]),
        row_count=int(file["record_count"]),
        encrypted=file.get("key_metadata") is not None,
    )


def _records(file: BinaryIO) -> Iterator[Any]:
    reader = fastavro.reader(file)
    if reader.codec not in ("null", "deflate"):
        raise InvalidUpload(OTHER_CODEC)
    yield from reader


@contextmanager
def _as_damaged() -> Iterator[None]:
    """Tell what a file of somebody else's does to the reader by a rule: its words may quote a bound."""
    try:
        yield
    except (InvalidUpload, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - told by its rule
        raise InvalidUpload(DAMAGED) from None
