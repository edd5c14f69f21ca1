"""What the ends of a table's files say: columns, rows, and which snapshot it is. No page of data is read for it.

A footer may repeat single texts as bounds of a column, so its digest is as private as the rows. Whoever sees a
snapshot's id can try nothing out with it, nor tell whether two registrations were alike: the id is keyed with a secret
of the registration.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from annotation.errors import InvalidUpload
from annotation.tables.stores import StoredFile, TableStore
from privacy.wording import say

MAGIC = b"PAR1"
# The length of the footer, and the magic.
TAIL_BYTES = 8
MOST_FOOTER_BYTES = 64 * 1024 * 1024
# What one row group of the columns may unpack to: a reader holds it.
MOST_GROUP_BYTES = 1024 * 1024 * 1024
DAMAGED = say("address: a file of the table is no Parquet file, or is cut off or encrypted")


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Which columns of a table are read; `contributor` is None where nobody is asked for."""

    text: str
    contributor: str | None

    @property
    def names(self) -> list[str]:
        """Names of the columns, each once."""
        return list(dict.fromkeys(name for name in (self.text, self.contributor) if name))


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of a table: its rows, and a digest of its name, its size, its version and its footer."""

    name: str
    row_count: int
    sha256: str


def table_files(store: TableStore, columns: TableColumns, check: Callable[[], None]) -> Iterator[TableFile]:
    """Yield every file of a table from its footer; `InvalidUpload` names the column or the rule that is broken."""
    for found in store.listed():
        check()
        footer = footer_of(store, found)
        try:
            metadata = pq.read_metadata(pa.BufferReader(footer))
            schema = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError):
            raise InvalidUpload(DAMAGED) from None
        _check_columns(schema, columns)
        _check_groups(metadata, columns)
        yield TableFile(found.name, metadata.num_rows, digest_of(found, footer))


def footer_of(store: TableStore, file: StoredFile) -> bytes:
    """Return the end of a file from its footer on."""
    if file.size < len(MAGIC) + TAIL_BYTES:
        raise InvalidUpload(DAMAGED)
    tail = store.read(file, file.size - TAIL_BYTES, TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > min(MOST_FOOTER_BYTES, file.size - len(MAGIC) - TAIL_BYTES):
        raise InvalidUpload(DAMAGED)
    return store.read(file, file.size - TAIL_BYTES - length, length) + tail


def digest_of(file: StoredFile, footer: bytes) -> str:
    """Return what a file is known by; it differs once the file was written again."""
    digest = hashlib.sha256(json.dumps([file.name, file.size, file.version]).encode())
    digest.update(b"\0")
    digest.update(footer)
    return digest.hexdigest()


def snapshot_of(files: Iterable[TableFile], *, secret: bytes) -> str:
    """Return the id of a snapshot under the secret of a registration, in hexadecimal."""
    named = json.dumps([[file.name, file.row_count, file.sha256] for file in files])
    return hmac.digest(secret, named.encode(), "sha256").hex()


def _check_columns(schema: pa.Schema, columns: TableColumns) -> None:
    for role, name in (("text", columns.text), ("contributor", columns.contributor)):
        if name is None:
            continue
        if schema.names.count(name) != 1:
            raise InvalidUpload(say("{role}: a file of the table has no single column {name!r}", role=role, name=name))
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        texts = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        if not (texts or (role == "contributor" and pa.types.is_integer(kind))):
            raise InvalidUpload(say("{role}: the column {name!r} does not hold texts", role=role, name=name))


def _check_groups(metadata: pq.FileMetaData, columns: TableColumns) -> None:
    for group in range(metadata.num_row_groups):
        found = metadata.row_group(group)
        held = (found.column(place) for place in range(found.num_columns))
        unpacked = sum(column.total_uncompressed_size for column in held if column.path_in_schema in columns.names)
        if unpacked > MOST_GROUP_BYTES:
            raise InvalidUpload(
                say("address: a row group of the table unpacks to more than {most:,} bytes", most=MOST_GROUP_BYTES)
            )
