"""A pool as columns: some rows of it in one Parquet file, whose digest says that nothing was changed.

An empty slot is a row without a text and without a contributor; it keeps its place, so the coins of all others stay.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privacy.errors import PoolDamaged
from privacy.wording import say

PSEUDONYM_BYTES: Final = 16
POOL_SCHEMA: Final = pa.schema([("text", pa.large_string()), ("contributor", pa.binary(PSEUDONYM_BYTES))])
# Rows that are written, and read, at once.
GROUP_ROWS: Final = 65_536
# What an empty slot counts as where contributors are capped: somebody without a text.
NOBODY: Final = bytes(PSEUDONYM_BYTES)


class ColumnsWriter:
    """Write rows to an open file, in groups of one size; `close` ends it.

    Parameters
    ----------
    file : binary file
        Takes the columns; read it only after `close`.
    """

    def __init__(self, file: BinaryIO) -> None:
        # Statistics would repeat single texts and pseudonyms at the end of the file.
        self._writer = pq.ParquetWriter(file, POOL_SCHEMA, compression="zstd", write_statistics=False)
        self._waiting: list[pa.Table] = []
        self._held = 0
        self.rows = 0

    def write(self, rows: pa.Table) -> None:
        """Take rows of `POOL_SCHEMA`, in the order of the pool."""
        self._waiting.append(rows)
        self._held += rows.num_rows
        self.rows += rows.num_rows
        if self._held >= GROUP_ROWS:
            self._flush(whole=True)

    def close(self) -> None:
        """Write what is left; at least an empty file."""
        self._flush(whole=False)
        self._writer.close()

    def _flush(self, *, whole: bool) -> None:
        if not self._waiting:
            return
        rows = pa.concat_tables(self._waiting).combine_chunks()
        ready = rows.num_rows // GROUP_ROWS * GROUP_ROWS if whole else rows.num_rows
        if ready:
            self._writer.write_table(rows.slice(0, ready), row_group_size=GROUP_ROWS)
        self._waiting = [rows.slice(ready)] if ready < rows.num_rows else []
        self._held = rows.num_rows - ready


def pool_rows(texts: Sequence[str | None], contributors: Sequence[bytes | None] | pa.Array | None) -> pa.Table:
    """Return rows as the columns of a pool; `contributors` is None where the pool names none."""
    people = pa.nulls(len(texts), POOL_SCHEMA.field("contributor").type) if contributors is None else contributors
    return pa.table([texts, people], schema=POOL_SCHEMA)


def read_columns(content: bytes, sha256: str, *, contributors: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, group by group: column text and, if wanted, contributor.

    Parameters
    ----------
    content : bytes
        The whole file.
    sha256 : str
        Its digest, in hexadecimal, as it was noted when the file was written.
    contributors : bool
        Whether to read who said it; an empty slot is `NOBODY`'s.

    Raises
    ------
    PoolDamaged
        If the bytes are others than those that were written, before any row is read.
    """
    check_digest(content, sha256)
    file = pq.ParquetFile(pa.BufferReader(content))
    for batch in file.iter_batches(batch_size=GROUP_ROWS, columns=POOL_SCHEMA.names if contributors else ["text"]):
        if not contributors:
            yield batch
            continue
        text, contributor = batch.column("text"), batch.column("contributor")
        slots = pc.and_(pc.is_null(text), pc.is_null(contributor))
        people = pc.if_else(slots, pa.scalar(NOBODY, type=contributor.type), contributor)
        yield pa.record_batch([text, people], schema=POOL_SCHEMA)


def contributor_rows(content: bytes, sha256: str, contributor: bytes) -> NDArray[np.int64]:
    """Return the rows of a file that one contributor brought, shape (n,), ascending."""
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
        raise PoolDamaged(say("A file of the pool is not what was stored: its digest differs. Nothing was read of it."))
