"""Registered tables: Parquet files read where they lie, with columns, rows and snapshot known from the files' ends."""

# A footer may repeat single texts as bounds of a column, so its digest is as private as the rows; a snapshot's id is
# keyed with a secret of the registration, so nothing can be tried out with it. Each row becomes a text with its
# contributor, or an empty slot, by itself: no row can end a run, or change what another one counts for.

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from annotation.data.readers.pseudonyms import PSEUDONYM_BYTES, Pseudonyms
from annotation.data.readers.stores import StoredFile, TableStore
from annotation.errors import InvalidUpload, TableChanged
from annotation.work.limits import WHOLE, Answer, run
from dpal.reading.cells import BadCell, all_texts_pass, read_contributor, read_text
from dpal.reading.parquet import python_values
from privacy.gate.columns import NOBODY, POOL_SCHEMA
from privacy.gate.engine import PoolFile
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
    text: str
    contributor: str | None
    text_id: int | None = None
    contributor_id: int | None = None

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for name in (self.text, self.contributor) if name))

    @property
    def roles(self) -> tuple[tuple[str, str | None], ...]:
        return ("text", self.text), ("contributor", self.contributor)

    def by_id(self, text_id: int, contributor_id: int | None) -> "TableColumns":
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
        asked = {"columns": asdict(columns), "most_group_bytes": MOST_GROUP_BYTES}
        told, _ = next(run(read_footer, BytesIO(footer), WHOLE, **asked))
        yield TableFile(found.name, told["rows"], digest_of(found, footer), found.size, tuple(told["group_rows"]))


def read_footer(file: BinaryIO, *, columns: dict[str, Any], most_group_bytes: int) -> Iterator[Answer]:
    """Yield the rows of a file and of its groups, once its columns are checked; a job of a limited process."""
    try:
        metadata = pq.read_metadata(file)
        schema = metadata.schema.to_arrow_schema()
    except (pa.ArrowException, OSError):
        raise InvalidUpload(DAMAGED) from None
    held = TableColumns(**columns).in_file(schema)
    _check_columns(schema, held)
    _check_groups(metadata, held, most_group_bytes)
    groups = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
    yield {"rows": metadata.num_rows, "group_rows": groups}, b""


def footer_of(store: TableStore, file: StoredFile) -> bytes:
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


def snapshot_of(files: Iterable[TableFile], *, secret: bytes, noted: dict[str, Any] | None = None) -> str:
    named: Any = [[file.name, file.row_count, file.sha256] for file in files]
    if noted is not None:
        named = {"noted": noted, "files": named}
    return hmac.digest(secret, json.dumps(named, sort_keys=True).encode(), "sha256").hex()


def no_single_column(role: str, name: str) -> InvalidUpload:
    return InvalidUpload(as_message("{role}: a file of the table has no single column {name!r}", role=role, name=name))


def no_column_of_texts(role: str, name: str) -> InvalidUpload:
    return InvalidUpload(as_message("{role}: the column {name!r} does not hold texts", role=role, name=name))


def _name_of(schema: pa.Schema, role: str, name: str, number: int) -> str:
    found = [each.name for each in schema if (each.metadata or {}).get(FIELD_ID) == str(number).encode()]
    if len(found) != 1:
        raise InvalidUpload(
            as_message(
                "{role}: a data file lacks the column {name!r} by its Iceberg id; rewrite the data files",
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


def _check_groups(metadata: pq.FileMetaData, columns: TableColumns, most: int) -> None:
    for group in range(metadata.num_row_groups):
        found = metadata.row_group(group)
        held = (found.column(place) for place in range(found.num_columns))
        unpacked = sum(column.total_uncompressed_size for column in held if column.path_in_schema in columns.names)
        if unpacked > most:
            raise InvalidUpload(
                as_message("address: a row group of the table unpacks to more than {most:,} bytes", most=most)
            )


BATCH_ROWS = 16_384
# A task of a cluster reads row groups until it has so many rows.
TASK_ROWS = 1_000_000
CHANGED = as_message("The table has changed. Register it again; this is charged as a new upload.")
UNREADABLE = as_message("address: a file of the table is no Parquet file, or is cut off or encrypted")


def table_rows(
    store: TableStore, file: PoolFile, columns: TableColumns, people: Pseudonyms | None
) -> Iterator[pa.RecordBatch]:
    """Yield text and, with `people`, contributor of a file's rows; `TableChanged` if it is not as registered."""
    check_unchanged(store, file)
    named = people if columns.contributor is not None else None
    read = 0
    try:
        with store.opened(store.find(file.name)) as opened:
            schema = pq.read_schema(opened)
            held = columns.in_file(schema)
            for batch in _parquet(opened, schema, held, file, contributors=named is not None):
                read += batch.num_rows
                texts = texts_of(batch.column(held.text))
                if named is None or held.contributor is None:
                    yield pa.record_batch([texts], names=["text"])
                else:
                    yield _named(texts, contributors_of(batch.column(held.contributor), named))
    except InvalidUpload:
        raise TableChanged(CHANGED) from None
    except (pa.ArrowException, OSError):
        raise TableChanged(UNREADABLE) from None
    if read != file.row_count:
        raise TableChanged(UNREADABLE)
    check_unchanged(store, file)


def parts_of(file: PoolFile, group_rows: Sequence[int]) -> Iterator[PoolFile]:
    first_group, first_row, rows = 0, file.first_row, 0
    for group, count in enumerate(group_rows):
        if rows and rows + count > TASK_ROWS:
            yield replace(file, first_row=first_row, row_count=rows, first_group=first_group, end_group=group)
            first_group, first_row, rows = group, first_row + rows, 0
        rows += count
    yield replace(file, first_row=first_row, row_count=rows, first_group=first_group)


def cut_by_groups(files: Sequence[TableFile]) -> Callable[[PoolFile], Iterator[PoolFile]]:
    groups = {file.name: file.group_rows for file in files}
    return lambda file: parts_of(file, groups[file.name])


def check_unchanged(store: TableStore, file: PoolFile) -> None:
    """Raise `TableChanged` unless a file is the one that was registered; no row is read for it."""
    try:
        found = store.find(file.name)
        same = digest_of(found, footer_of(store, found)) == file.sha256
    except (FileNotFoundError, InvalidUpload):
        same = False
    if not same:
        raise TableChanged(CHANGED)


def texts_of(column: pa.Array) -> pa.Array:
    return _each_word(column, _passing_texts, pa.large_string())


def contributors_of(column: pa.Array, people: Pseudonyms) -> pa.Array:
    return _each_word(
        column, lambda words: [people.of(_or_none(_read_person, word)) for word in words], pa.binary(PSEUDONYM_BYTES)
    )


def _parquet(
    opened: Any, schema: pa.Schema, columns: TableColumns, part: PoolFile, *, contributors: bool
) -> Iterator[pa.RecordBatch]:
    names = columns.names if contributors else [columns.text]
    # Texts stay words of a dictionary until they are checked, so repeats cost no memory.
    texts = [name for name in names if not pa.types.is_integer(schema.field(name).type)]
    file = pq.ParquetFile(opened, read_dictionary=texts, buffer_size=1024 * 1024, pre_buffer=False)
    groups = range(file.num_row_groups)[part.first_group : part.end_group]
    yield from file.iter_batches(batch_size=BATCH_ROWS, row_groups=groups, columns=names)


def _named(texts: pa.Array, people: pa.Array) -> pa.RecordBatch:
    slots = pc.or_(pc.is_null(texts), pc.is_null(people))
    text = pc.if_else(slots, pa.scalar(None, type=texts.type), texts)
    return pa.record_batch([text, pc.if_else(slots, pa.scalar(NOBODY, type=people.type), people)], schema=POOL_SCHEMA)


def _each_word(column: pa.Array, rule: Callable[[list[Any]], list[Any]], kind: pa.DataType) -> pa.Array:
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    named = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    if not named.any():
        return pa.nulls(len(column), kind)
    places = encoded.indices.to_numpy(zero_copy_only=False)
    used, known = np.unique(places[named].astype(np.int64), return_inverse=True)
    made = rule(python_values(encoded.dictionary.take(pa.array(used))))
    taken = np.zeros(len(column), dtype=np.int64)
    taken[named] = known
    return pa.array(made, kind).take(pa.array(taken, mask=~named))


def _passing_texts(words: list[Any]) -> list[str | None]:
    return words if all_texts_pass(words) else [_or_none(read_text, word) for word in words]


def _read_person(cell: Any) -> str | None:
    return read_contributor(cell, required=True)


def _or_none(rule: Callable[[Any], str | None], cell: Any) -> str | None:
    try:
        return rule(cell)
    except BadCell:
        return None
