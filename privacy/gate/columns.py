"""Pool as columns: some rows of it in one Parquet file, whose digest says that nothing was changed."""

# An empty slot is a row without a text and without a contributor; it keeps its place, so the coins of all others stay.

import hashlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privacy.errors import PoolDamaged

PSEUDONYM_BYTES: Final = 16
POOL_SCHEMA: Final = pa.schema([("text", pa.large_string()), ("contributor", pa.binary(PSEUDONYM_BYTES))])
# A group of rows ends at whichever comes first, and is written at once.
GROUP_ROWS: Final = 262_144
GROUP_BYTES: Final = 2**26
# Rows that are read at once where their texts stand one by one.
BATCH_ROWS: Final = 65_536
# What different texts of a group may take, with the rows naming them by number; beyond it they stand one by one.
DICTIONARY_BYTES: Final = 2**22
LARGEST_NUMBER_BYTES: Final = 3
# What an empty slot counts as where contributors are capped: somebody without a text.
NOBODY: Final = bytes(PSEUDONYM_BYTES)


class ColumnsWriter:
    """Write rows to an open file, in groups; `close` ends it, and it can be read only then."""

    def __init__(self, file: BinaryIO) -> None:
        # Statistics would repeat single texts and pseudonyms at the end of the file.
        self._writer = pq.ParquetWriter(
            file, POOL_SCHEMA, compression="zstd", write_statistics=False, dictionary_pagesize_limit=DICTIONARY_BYTES
        )
        self._waiting: list[pa.Table] = []
        self._held = self._held_bytes = 0
        self.rows = 0

    def write(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        while rows.num_rows:
            taken = rows.slice(0, GROUP_ROWS - self._held)
            rows = rows.slice(taken.num_rows)
            self._waiting.append(taken)
            self._held += taken.num_rows
            self._held_bytes += taken.nbytes
            if self._held == GROUP_ROWS or self._held_bytes >= GROUP_BYTES:
                self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=GROUP_ROWS)
        self._waiting, self._held, self._held_bytes = [], 0, 0


def pool_rows(texts: Sequence[str | None], contributors: Sequence[bytes | None] | pa.Array | None) -> pa.Table:
    people = pa.nulls(len(texts), POOL_SCHEMA.field("contributor").type) if contributors is None else contributors
    return pa.table([texts, people], schema=POOL_SCHEMA)


def read_columns(content: bytes, sha256: str, *, contributors: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, group by group: column text and, if wanted, contributor (`NOBODY` in an empty slot).

    Texts that are said again and again are dictionary-encoded, as they are stored: to check, count and normalise each
    of them once is most of what makes a scan quick. `PoolDamaged` comes before any row where the bytes have another
    digest.
    """
    check_digest(content, sha256)
    buffer = pa.BufferReader(content)
    metadata = pq.read_metadata(buffer)
    encoded = ["text"] if _repeats_texts(metadata) else None
    file = pq.ParquetFile(buffer, metadata=metadata, read_dictionary=encoded)
    names = POOL_SCHEMA.names if contributors else ["text"]
    for group in range(metadata.num_row_groups):
        # Numbers take little, and a dictionary is checked once for all rows that are read with it.
        for batch in file.iter_batches(GROUP_ROWS if encoded else BATCH_ROWS, row_groups=[group], columns=names):
            yield _with_nobody(batch) if contributors else batch


def _with_nobody(batch: pa.RecordBatch) -> pa.RecordBatch:
    text, contributor = batch.column("text"), batch.column("contributor")
    slots = pc.and_(pc.is_null(text), pc.is_null(contributor))
    people = pc.if_else(slots, pa.scalar(NOBODY, type=contributor.type), contributor)
    return pa.record_batch([text, people], names=POOL_SCHEMA.names)


def plain_texts(batch: pa.RecordBatch) -> pa.Array:
    texts = batch.column("text")
    return texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts


def _repeats_texts(metadata: pq.FileMetaData) -> bool:
    """Say whether all groups hold their texts as numbers of a dictionary; making one while reading costs more."""
    groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
    return all(
        group.column(0).total_uncompressed_size <= DICTIONARY_BYTES + LARGEST_NUMBER_BYTES * group.num_rows
        for group in groups
    )


def contributor_rows(content: bytes, sha256: str, contributor: bytes) -> NDArray[np.int64]:
    check_digest(content, sha256)
    named = pq.read_table(pa.BufferReader(content), columns=["contributor"])["contributor"].combine_chunks()
    found: NDArray[np.int64] = np.flatnonzero(
        pc.fill_null(pc.equal(named, pa.scalar(contributor, type=named.type)), False).to_numpy(zero_copy_only=False)
    )
    return found


def emptied(content: bytes, sha256: str, rows: NDArray[np.int64] | None, target: BinaryIO) -> int:
    """Write a file again with some rows as empty slots, or all of them; return how many are empty then.

    Nothing of an emptied row is written, in whatever form: dictionaries are made anew from what is left.
    """
    check_digest(content, sha256)
    table = pq.read_table(pa.BufferReader(content), schema=POOL_SCHEMA)
    gone = np.zeros(table.num_rows, dtype=np.bool_)
    gone[slice(None) if rows is None else rows] = True
    mask = pa.array(gone)
    columns = [pc.if_else(mask, pa.scalar(None, type=field.type), table[field.name]) for field in POOL_SCHEMA]
    left = pa.table(columns, schema=POOL_SCHEMA)
    writer = ColumnsWriter(target)
    writer.write(left)
    writer.close()
    return int(left["text"].null_count)


def check_digest(content: bytes, sha256: str) -> None:
    """Refuse bytes that are not those that were written; the message quotes nothing of them."""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise PoolDamaged("A pool file was changed after it was stored (its digest differs). It was not read.")
