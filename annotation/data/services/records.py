"""Records as COPY takes them: rows encoded by the batch, written at once or kept in files until they have numbers."""

import json
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import Copy

from annotation.data.readers.pseudonyms import Pseudonyms
from annotation.data.services.pool_files import PREFIX, WrittenFile, discard, store_file
from annotation.data.services.pseudonyms import site_pseudonyms
from annotation.models import Dataset
from annotation.models.database import copied_into
from annotation.work.services import files
from dpal.reading.rows import RowBatch

RECORDS = "annotation_record"
RECORD_COLUMNS = ("dataset_id", "row_number", "text", "payload", "contributor", "label", "metadata")
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
    def __init__(self, copy: Copy, *, dataset_id: int) -> None:
        self._send: Callable[[bytes | memoryview], None] = copy.write
        self._dataset_id = dataset_id
        self._pseudonyms = site_pseudonyms()
        self._send(SIGNATURE)
        self.rows = 0

    def write(self, batch: RowBatch) -> None:
        for fields in encoded_rows(batch, self._pseudonyms):
            self.write_encoded(fields)

    def write_encoded(self, fields: Sequence[pa.Array]) -> None:
        count = len(fields[0])
        self._send(joined([self._heads(count), *fields]))
        self.rows += count

    def close(self) -> None:
        self._send(TRAILER)

    def _heads(self, count: int) -> pa.Array:
        heads = np.empty(count, dtype=HEAD)
        heads["fields"], heads["length_1"], heads["length_2"] = len(RECORD_TYPES), 8, 8
        heads["dataset"] = self._dataset_id
        heads["row"] = np.arange(count) + self.rows
        return fixed(heads)


class EncodedRows:
    def __init__(self, folder: str) -> None:
        self._name = f"{folder}/{PREFIX}{secrets.token_hex(8)}.arrow"
        self._spool: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close` or `discard`
        self._pseudonyms = site_pseudonyms()
        self._stream: pa.RecordBatchStreamWriter | None = None
        self._rows = 0
        self.written: list[WrittenFile] = []

    def write(self, batch: RowBatch) -> None:
        for fields in encoded_rows(batch, self._pseudonyms):
            held = pa.record_batch(fields, names=[str(place) for place in range(len(fields))])
            self._stream = self._stream or pa.ipc.new_stream(self._spool, held.schema)
            self._stream.write_batch(held)
            self._rows += held.num_rows

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            sha256 = store_file(self._spool, self._name)
            self.written.append(WrittenFile(self._name, sha256, self._rows, named=False))
        self._spool.close()

    def discard(self) -> None:
        self._spool.close()
        discard([asdict(each) for each in self.written])


def copy_encoded(dataset: Dataset, written: Iterable[WrittenFile], check: Callable[[], None]) -> None:
    with copied_into(RECORDS, RECORD_COLUMNS) as copy:
        writer = RecordWriter(copy, dataset_id=dataset.pk)
        for each in written:
            with files.open_stored(each.file, each.sha256, lambda path: path.open("rb")) as stored:
                for held in pa.ipc.open_stream(stored):
                    check()
                    writer.write_encoded(held.columns)
        writer.close()


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
    offsets = np.arange(0, (len(rows) + 1) * rows.itemsize, rows.itemsize, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(rows)])


def nothing(count: int) -> list[pa.Array]:
    return [fixed(np.full(count, -1, dtype=">i4"))]


def sized(values: Sequence[str | bytes | None]) -> list[pa.Array]:
    cells = pa.array(values, pa.binary())
    lengths = pc.binary_length(cells).fill_null(-1)
    return [fixed(lengths.to_numpy().astype(">i4")), cells.fill_null(b"") if cells.null_count else cells]


def whole_numbers(values: Sequence[int]) -> list[pa.Array]:
    rows = np.empty(len(values), dtype=[("length", ">i4"), ("value", ">i8")])
    rows["length"], rows["value"] = 8, values
    return [fixed(rows)]


def as_jsonb(payload: dict[str, Any]) -> bytes:
    return JSONB_VERSION + json.dumps(payload).encode()


def joined(fields: Sequence[pa.Array]) -> memoryview:
    rows = pc.binary_join_element_wise(*fields, b"")
    offsets = np.frombuffer(rows.buffers()[1], dtype=np.int32)
    first = rows.offset
    return memoryview(rows.buffers()[2])[offsets[first] : offsets[first + len(rows)]]
