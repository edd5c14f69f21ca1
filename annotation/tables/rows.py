"""The rows of a table as gates read them, where they lie.

Each row becomes a text with its contributor, or an empty slot, by itself: no row can end a run, or change what another
one counts for. How many slots are empty is told to nobody.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from annotation.errors import InvalidUpload, TableChanged
from annotation.tables.cells import BadCell, all_texts_pass, read_contributor, read_text
from annotation.tables.footers import TableColumns, digest_of, footer_of
from annotation.tables.pseudonyms import PSEUDONYM_BYTES, Pseudonyms
from annotation.tables.stores import TableStore
from privacy.engines.base import PoolFile
from privacy.gate.columns import NOBODY, POOL_SCHEMA
from privacy.wording import as_message

BATCH_ROWS = 16_384
# A task of a cluster reads row groups until it has so many rows.
TASK_ROWS = 1_000_000
CHANGED = as_message(
    "The table is not the one that was registered. Register it again to take its newer snapshot: that counts, and is "
    "charged, as a new upload."
)
UNREADABLE = as_message("A file of the registered table cannot be read to its end.")


def table_rows(
    store: TableStore, file: PoolFile, columns: TableColumns, people: Pseudonyms | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file that was registered, or of some groups: text and, unless `people` is None, contributor.

    Raises
    ------
    TableChanged
        If the file is another one than was registered, before any row is read or after the last; or if it is damaged.
    """
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
    """Yield a file as parts of whole row groups, in their order; each is read by itself.

    Parameters
    ----------
    file : PoolFile
        The whole file.
    group_rows : sequence of int
        Rows in each of its groups.
    """
    first_group, first_row, rows = 0, file.first_row, 0
    for group, count in enumerate(group_rows):
        if rows and rows + count > TASK_ROWS:
            yield replace(file, first_row=first_row, row_count=rows, first_group=first_group, end_group=group)
            first_group, first_row, rows = group, first_row + rows, 0
        rows += count
    yield replace(file, first_row=first_row, row_count=rows, first_group=first_group)


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
    """Return texts that may be stored, and null for every other cell."""
    return _each_word(column, _passing_texts, pa.large_string())


def contributors_of(column: pa.Array, people: Pseudonyms) -> pa.Array:
    """Return pseudonyms, and null where nobody is named."""
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
    """Return rows with both; a row without a text or without a name is a slot, and nobody's."""
    slots = pc.or_(pc.is_null(texts), pc.is_null(people))
    text = pc.if_else(slots, pa.scalar(None, type=texts.type), texts)
    return pa.record_batch([text, pc.if_else(slots, pa.scalar(NOBODY, type=people.type), people)], schema=POOL_SCHEMA)


def _each_word(column: pa.Array, rule: Callable[[list[Any]], list[Any]], kind: pa.DataType) -> pa.Array:
    """Apply a rule once to every value of a batch and put what it makes in the place of each."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    named = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    if not named.any():
        return pa.nulls(len(column), kind)
    places = encoded.indices.to_numpy(zero_copy_only=False)
    used, known = np.unique(places[named].astype(np.int64), return_inverse=True)
    made = rule(_python_values(encoded.dictionary.take(pa.array(used))))
    taken = np.zeros(len(column), dtype=np.int64)
    taken[named] = known
    return pa.array(made, kind).take(pa.array(taken, mask=~named))


def _python_values(words: pa.Array) -> list[Any]:
    """Return values as Python has them; bytes that are no UTF-8 become lone surrogates, which the rules find."""
    try:
        values: list[Any] = words.to_pylist()
    except UnicodeDecodeError:
        raw = words.cast(pa.large_binary()).to_pylist()
        values = [None if word is None else word.decode("utf-8", "surrogateescape") for word in raw]
    return values


def _passing_texts(words: list[Any]) -> list[str | None]:
    return words if all_texts_pass(words) else [_or_none(read_text, word) for word in words]


def _read_person(cell: Any) -> str | None:
    return read_contributor(cell, required=True)


def _or_none(rule: Callable[[Any], str | None], cell: Any) -> str | None:
    try:
        return rule(cell)
    except BadCell:
        return None
