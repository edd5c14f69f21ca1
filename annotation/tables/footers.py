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
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from annotation.errors import InvalidUpload
from annotation.tables.stores import StoredFile, TableStore
from privacy.wording import as_message

MAGIC = b"PAR1"
# The length of the footer, and the magic.
TAIL_BYTES = 8
MOST_FOOTER_BYTES = 64 * 1024 * 1024
# What one row group of the columns may unpack to: a reader holds it.
MOST_GROUP_BYTES = 1024 * 1024 * 1024
# Under which a Parquet file keeps the id of a column.
FIELD_ID: Final = b"PARQUET:field_id"
DAMAGED = as_message("address: a file of the table is no Parquet file, or is cut off or encrypted")


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Which columns of a table are read; `contributor` is None where nobody is asked for.

    Parameters
    ----------
    text, contributor : str
        Their names; of an Iceberg table, those that its snapshot has for them.
    text_id, contributor_id : int, optional
        Their ids in the files of an Iceberg table, where a name may be another one.
    """

    text: str
    contributor: str | None
    text_id: int | None = None
    contributor_id: int | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns, each once."""
        return list(dict.fromkeys(name for name in (self.text, self.contributor) if name))

    @property
    def roles(self) -> tuple[tuple[str, str | None], ...]:
        """What each column is read as."""
        return ("text", self.text), ("contributor", self.contributor)

    def by_id(self, text_id: int, contributor_id: int | None) -> "TableColumns":
        """Return the columns, to be found by ids."""
        return TableColumns(self.text, self.contributor, text_id, contributor_id)

    def in_file(self, schema: pa.Schema) -> "TableColumns":
        """Return the columns by the names that a file has for them; `InvalidUpload` names one that it does not hold."""
        if self.text_id is None:
            return self
        named = _name_of(schema, "text", self.text, self.text_id)
        if self.contributor is None or self.contributor_id is None:
            return TableColumns(named, None)
        return TableColumns(named, _name_of(schema, "contributor", self.contributor, self.contributor_id))


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of a table: its rows, and a digest of its name, its size, its version and its footer; rows by group."""

    name: str
    row_count: int
    sha256: str
    size: int
    group_rows: tuple[int, ...]


def table_files(
    store: TableStore, columns: TableColumns, check: Callable[[], None], names: Iterable[str] | None = None
) -> Iterator[TableFile]:
    """Yield every file of a table from its footer, or those that are named; `InvalidUpload` names the broken rule."""
    for found in store.listed() if names is None else map(store.find, names):
        check()
        footer = footer_of(store, found)
        try:
            metadata = pq.read_metadata(pa.BufferReader(footer))
            schema = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError):
            raise InvalidUpload(DAMAGED) from None
        held = columns.in_file(schema)
        _check_columns(schema, held)
        _check_groups(metadata, held)
        groups = tuple(metadata.row_group(place).num_rows for place in range(metadata.num_row_groups))
        yield TableFile(found.name, metadata.num_rows, digest_of(found, footer), found.size, groups)


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


def snapshot_of(files: Iterable[TableFile], *, secret: bytes, iceberg: dict[str, Any] | None = None) -> str:
    """Return the id of a snapshot under the secret of a registration, in hexadecimal.

    Parameters
    ----------
    files : iterable of TableFile
        All of it, in their order.
    secret : bytes
        Of the registration.
    iceberg : dict, optional
        What Iceberg's own metadata say of it: table, snapshot and ids of the columns.
    """
    named: Any = [[file.name, file.row_count, file.sha256] for file in files]
    if iceberg is not None:
        named = {"iceberg": iceberg, "files": named}
    return hmac.digest(secret, json.dumps(named, sort_keys=True).encode(), "sha256").hex()


def no_single_column(role: str, name: str) -> InvalidUpload:
    """Return the refusal of a table in which a column is not, or is twice."""
    return InvalidUpload(as_message("{role}: a file of the table has no single column {name!r}", role=role, name=name))


def no_column_of_texts(role: str, name: str) -> InvalidUpload:
    """Return the refusal of a column that holds something else."""
    return InvalidUpload(as_message("{role}: the column {name!r} does not hold texts", role=role, name=name))


def _name_of(schema: pa.Schema, role: str, name: str, number: int) -> str:
    """Return the name that a file of an Iceberg table has for a column."""
    found = [each.name for each in schema if (each.metadata or {}).get(FIELD_ID) == str(number).encode()]
    if len(found) != 1:
        raise InvalidUpload(
            as_message(
                "{role}: a data file does not hold the column {name!r} by its Iceberg id: it is older than the column, "
                "was added without ids, or leaves out the values of its partition; rewrite the data files",
                role=role,
                name=name,
            )
        )
    named: str = found[0]
    return named


def _check_columns(schema: pa.Schema, columns: TableColumns) -> None:
    for role, name in columns.roles:
        if name is None:
            continue
        if schema.names.count(name) != 1:
            raise no_single_column(role, name)
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        texts = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        if not (texts or (role == "contributor" and pa.types.is_integer(kind))):
            raise no_column_of_texts(role, name)


def _check_groups(metadata: pq.FileMetaData, columns: TableColumns) -> None:
    for group in range(metadata.num_row_groups):
        found = metadata.row_group(group)
        held = (found.column(place) for place in range(found.num_columns))
        unpacked = sum(column.total_uncompressed_size for column in held if column.path_in_schema in columns.names)
        if unpacked > MOST_GROUP_BYTES:
            raise InvalidUpload(
                as_message(
                    "address: a row group of the table unpacks to more than {most:,} bytes", most=MOST_GROUP_BYTES
                )
            )
