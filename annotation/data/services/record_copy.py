"""Checked rows into Postgres by binary COPY, a whole batch of them encoded at once.

References
----------
.. [1] PostgreSQL documentation, COPY, "Binary Format": every field is its length, then its bytes, in network order.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import Copy

from annotation.parsers.rows import RowBatch
from annotation.tables.pseudonym_keys import site_pseudonyms
from annotation.tables.pseudonyms import Pseudonyms

RECORD_COPY = (
    "COPY annotation_record (dataset_id, row_number, text, payload, contributor, label, metadata) "
    "FROM STDIN (FORMAT BINARY)"
)
RECORD_TYPES = ("int8", "int8", "text", "jsonb", "bytea", "int2", "jsonb")
# A batch of longer texts goes out in parts, so that none is held three times over.
MAXIMUM_ROWS = 16_384
SIGNATURE = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"
JSONB_VERSION = b"\x01"
HEAD = np.dtype(
    [("fields", ">i2"), ("length_1", ">i4"), ("dataset", ">i8"), ("length_2", ">i4"), ("row", ">i8")], align=False
)


class RecordWriter:
    """Write the rows of one dataset, numbered on from `first_row` in the order they come; `close` ends the COPY."""

    def __init__(self, copy: Copy, *, dataset_id: int, first_row: int = 0) -> None:
        self._send: Callable[[bytes | memoryview], None] = copy.write
        self._dataset_id = dataset_id
        self._first_row = first_row
        self._pseudonyms = site_pseudonyms()
        self._send(SIGNATURE)
        self.rows = 0

    def write(self, batch: RowBatch) -> None:
        """Write every row of a batch."""
        for fields in encoded_rows(batch, self._pseudonyms):
            self.write_encoded(fields)

    def write_encoded(self, fields: Sequence[pa.Array]) -> None:
        """Write rows that were encoded before."""
        count = len(fields[0])
        self._send(joined([self._heads(count), *fields]))
        self.rows += count

    def close(self) -> None:
        """Say that no row follows."""
        self._send(TRAILER)

    def _heads(self, count: int) -> pa.Array:
        """Return the number of fields, the dataset and the row number of each row, encoded."""
        heads = np.empty(count, dtype=HEAD)
        heads["fields"], heads["length_1"], heads["length_2"] = len(RECORD_TYPES), 8, 8
        heads["dataset"] = self._dataset_id
        heads["row"] = np.arange(count) + self._first_row + self.rows
        return fixed(heads)


class RowSpool:
    """Rows encoded and kept in a file of their own until it is known which numbers they have."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._pseudonyms = site_pseudonyms()
        self._writer: pa.RecordBatchStreamWriter | None = None

    def write(self, batch: RowBatch) -> None:
        """Keep every row of a batch."""
        for fields in encoded_rows(batch, self._pseudonyms):
            held = pa.record_batch(fields, names=[str(place) for place in range(len(fields))])
            self._writer = self._writer or pa.ipc.new_stream(self._file, held.schema)
            self._writer.write_batch(held)

    def copy_into(self, writer: RecordWriter) -> None:
        """Write all rows that were kept."""
        if self._writer is None:
            return
        self._writer.close()
        self._file.seek(0)
        for held in pa.ipc.open_stream(self._file):
            writer.write_encoded(held.columns)


def encoded_rows(batch: RowBatch, pseudonyms: Pseudonyms) -> Iterator[list[pa.Array]]:
    """Yield the rows of a batch part by part: all their fields but dataset and row number, encoded."""
    for start in range(0, batch.count, MAXIMUM_ROWS):
        part = slice(start, min(start + MAXIMUM_ROWS, batch.count))
        count = part.stop - part.start
        fields = nothing(count) if batch.texts is None else sized(batch.texts[part])
        fields += nothing(count) if batch.payloads is None else sized(list(map(as_jsonb, batch.payloads[part])))
        names = None if batch.contributors is None else batch.contributors[part]
        fields += nothing(count) if names is None else sized(list(map(pseudonyms.of, names)))
        fields += nothing(count) if batch.labels is None else whole_numbers(batch.labels[part])
        fields += nothing(count) if batch.metadata is None else sized(list(map(as_jsonb, batch.metadata[part])))
        yield fields


def fixed(rows: "np.ndarray[Any, Any]") -> pa.Array:
    """Return each element of an array as its bytes."""
    offsets = np.arange(0, (len(rows) + 1) * rows.itemsize, rows.itemsize, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(rows)])


def nothing(count: int) -> list[pa.Array]:
    """Return a column of NULLs, encoded."""
    return [fixed(np.full(count, -1, dtype=">i4"))]


def sized(values: Sequence[str | bytes | None]) -> list[pa.Array]:
    """Return lengths and bytes of texts or of bytes, a NULL as a length of -1."""
    cells = pa.array(values, pa.binary())
    lengths = pc.binary_length(cells).fill_null(-1)
    return [fixed(lengths.to_numpy().astype(">i4")), cells.fill_null(b"") if cells.null_count else cells]


def whole_numbers(values: Sequence[int]) -> list[pa.Array]:
    """Return a column of eight-byte numbers, encoded."""
    rows = np.empty(len(values), dtype=[("length", ">i4"), ("value", ">i8")])
    rows["length"], rows["value"] = 8, values
    return [fixed(rows)]


def as_jsonb(payload: dict[str, Any]) -> bytes:
    """Return an object as the database's binary JSON is sent."""
    return JSONB_VERSION + json.dumps(payload).encode()


def joined(fields: Sequence[pa.Array]) -> memoryview:
    """Return the encoded rows one after another."""
    rows = pc.binary_join_element_wise(*fields, b"")
    offsets = np.frombuffer(rows.buffers()[1], dtype=np.int32)
    first = rows.offset
    return memoryview(rows.buffers()[2])[offsets[first] : offsets[first + len(rows)]]
