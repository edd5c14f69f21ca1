"""Manifests of an Iceberg table: Avro files that name its data files, read in bounded memory.

A manifest repeats single texts as bounds of columns, like a footer. Of an entry nothing is kept but what `Entry` has.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro

from annotation.errors import InvalidUpload
from privacy.wording import as_message

# What one manifest may take, and what all of it may unpack to.
MOST_BYTES = 32 * 1024 * 1024
MOST_UNPACKED_BYTES = 512 * 1024 * 1024
SYNC_BYTES = 16
MAGIC = b"Obj\x01"
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
    with _as_damaged():
        return [
            Manifest(str(each["manifest_path"]), each.get("content") not in (None, 0)) for each in _records(content)
        ]


def manifest_entries(content: bytes) -> list[Entry]:
    """Return the files of a manifest that were not taken out of it; `InvalidUpload` where it cannot be read."""
    with _as_damaged():
        return [_entry(each["data_file"]) for each in _records(content) if each["status"] != DELETED]


def _entry(file: Any) -> Entry:
    return Entry(
        path=str(file["file_path"]),
        kind=file["file_format"].upper(),
        size=int(file["file_size_in_bytes"]),
        row_count=int(file["record_count"]),
        encrypted=file.get("key_metadata") is not None,
    )


def _records(content: bytes) -> Iterator[Any]:
    _check_blocks(content)
    yield from fastavro.reader(BytesIO(content))


@contextmanager
def _as_damaged() -> Iterator[None]:
    """Tell what a file of somebody else's does to the reader by a rule: its words may quote a bound."""
    try:
        yield
    except InvalidUpload:
        raise
    except Exception:  # noqa: BLE001 - told by its rule
        raise InvalidUpload(DAMAGED) from None


def _check_blocks(content: bytes) -> None:
    """Refuse another codec, and what would unpack to more than a worker should hold."""
    stream = BytesIO(content)
    if stream.read(len(MAGIC)) != MAGIC:
        raise InvalidUpload(DAMAGED)
    header: dict[bytes, bytes] = {}
    while count := _long(stream):
        if count < 0:
            # So many bytes they take, which tells nothing more.
            count = -count + 0 * _long(stream)
        for _ in range(count):
            key = stream.read(_long(stream))
            header[key] = stream.read(_long(stream))
    codec = header.get(b"avro.codec", b"null")
    if codec not in (b"null", b"deflate"):
        raise InvalidUpload(OTHER_CODEC)
    stream.read(SYNC_BYTES)
    unpacked = 0
    while stream.tell() < len(content):
        _long(stream)
        block = stream.read(_long(stream))
        stream.read(SYNC_BYTES)
        if codec == b"deflate":
            block = zlib.decompressobj(-zlib.MAX_WBITS).decompress(block, MOST_UNPACKED_BYTES + 1)
        unpacked += len(block)
        if unpacked > MOST_UNPACKED_BYTES:
            raise InvalidUpload(DAMAGED)


def _long(stream: BytesIO) -> int:
    """Read a number as Avro writes it: seven bits a byte, the lowest first, its sign in the lowest of all."""
    found = shift = 0
    while True:
        (byte,) = stream.read(1)
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1)
        shift += 7
        if shift > 63:
            raise InvalidUpload(DAMAGED)
