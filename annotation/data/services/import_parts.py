"""Rows of an upload, read and stored in parts."""

import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from celery import current_app
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection, models, transaction
from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import Now
from psycopg import Copy

from annotation.data.readers.parts import PartReader, find_cuts
from annotation.data.readers.reading import Upload
from annotation.data.readers.rows import BadRow, RowBatch
from annotation.data.services import mappings, pool_files
from annotation.data.services.bad_rows import BadRowReport
from annotation.data.services.shared_rows import ComparedRows
from annotation.errors import InvalidUpload
from annotation.models import BadRows, Dataset, DatasetState, WorkState
from annotation.models.imports import ImportPart
from annotation.tables.pseudonym_keys import site_pseudonyms
from annotation.tables.pseudonyms import Pseudonyms
from annotation.tables.sources import Check
from annotation.work.services import attempts
from annotation.work.services.garbage_collection import collector_paused

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


logger = logging.getLogger(__name__)
# A worker reads so much in a few seconds; handing smaller pieces around costs more than it saves.
PART_BYTES = 2**25
LOOK_AGAIN_SECONDS = 0.1
READ_TASK = "annotation.tasks.read_import_parts_task"
# More messages would wait for workers that nobody has.
MOST_HELPERS = 64
TellRows = Callable[[int, int, int], None]
Sink = RecordWriter | RowSpool | pool_files.PoolWriter


class PartNotWhole(Exception):
    """A cut lies within a field."""


def open_parts(dataset: Dataset, upload: Upload, file: BinaryIO, *, size: int) -> bool:
    """Cut a file that nobody has cut yet and say whether there are parts to read; a small one is read in one piece."""
    standing = ImportPart.objects.filter(dataset=dataset)
    if not standing.exists():
        cuts = find_cuts(upload, file, size=size, part_bytes=PART_BYTES)
        if len(cuts) < 3:
            return False
        ImportPart.objects.bulk_create(
            ImportPart(dataset=dataset, number=number, first=first, stop=stop)
            for number, (first, stop) in enumerate(pairwise(cuts))
        )
    helping = current_app.signature(READ_TASK, kwargs={"dataset_id": dataset.pk})
    for _ in range(min(MOST_HELPERS, standing.filter(stored=False).count() - 1)):
        transaction.on_commit(helping.apply_async, robust=True)
    return True


def read_parts(dataset: Dataset, lease: attempts.Lease, tell: TellRows) -> bool:
    """Return once all parts are stored; false where the file has to be read in one piece."""
    parts = ImportPart.objects.filter(dataset=dataset)
    while left := parts.filter(stored=False).count():
        lease.check()
        if parts.filter(odd=True).exists() or _unpacks_to_too_much(parts):
            return False
        rows = parts.aggregate(rows=Sum("row_count", default=0))["rows"]
        tell(int(rows), parts.count() - left, parts.count())
        if not read_free_part(dataset_id=dataset.pk, check=lease.check):
            time.sleep(LOOK_AGAIN_SECONDS)
    return True


def help_reading(*, dataset_id: int) -> None:
    """Read parts until none is free."""
    while read_free_part(dataset_id=dataset_id):
        pass


def read_free_part(*, dataset_id: int, before: int | None = None, check: Check | None = None) -> bool:
    """Read the first part that nobody holds, of those before a number if one is given; false where none is free."""
    part: ImportPart | None = None
    with ExitStack() as stack:
        try:
            with transaction.atomic():
                part = _take(dataset_id, before)
                if part is None:
                    return False
                first_row = _rows_before(part)
                # Here, since it asks the database, which cannot answer within a COPY.
                comparison = ComparedRows(part.dataset, keep=False)
                if part.dataset.in_columns:
                    _write_columns(part, comparison, check)
                    return True
                if first_row is not None:
                    _store(part, comparison, first_row, check)
                    return True
                spool = RowSpool(cast(BinaryIO, stack.enter_context(tempfile.TemporaryFile())))
                _read(part, comparison, spool, check, followed=_is_followed(part))
                part.held_until = attempts.lease_end()
                part.save()
        except (InvalidUpload, PartNotWhole):
            assert part is not None
            ImportPart.objects.filter(pk=part.pk, stored=False).update(odd=True)
            return True
        _store_spooled(part, spool, check)
    return True


def collected(dataset: Dataset, comparison: ComparedRows) -> tuple[int, BadRowReport]:
    """Return the rows of all parts and what was wrong with others, by the lines of the whole file.

    The comparison learns what the workers found: with whose rows each part was compared, and whether one was shared.
    """
    report, rows, lines = BadRowReport(), 0, 0
    parts = list(ImportPart.objects.filter(dataset=dataset).order_by("number"))
    if not parts or not all(part.stored for part in parts):
        raise LookupError("parts of the upload are gone")
    for part in parts:
        kept = [BadRow(**{**row, "line": row["line"] + lines}) for row in part.bad_row_report]
        report.add(kept, count=part.bad_row_count)
        rows += part.row_count or 0
        lines += part.line_count or 0
        comparison.compared &= set(part.compared)
        comparison.shared |= part.shared
    return rows, report


def written_parts(dataset: Dataset) -> Iterator[pool_files.WrittenFile]:
    """Yield the files of columns that the parts were written to, in the order of the rows."""
    for part in ImportPart.objects.filter(dataset=dataset).order_by("number"):
        yield from (pool_files.WrittenFile(**each) for each in part.pool_files)


def forget_import_parts(dataset: Dataset) -> None:
    """Delete the parts and leave their rows, in the transaction in which these become the upload's."""
    ImportPart.objects.filter(dataset=dataset).delete()


def discard_parts(dataset: Dataset) -> None:
    """Delete the parts and all rows they stored; waits for whoever is storing some at this moment."""
    with transaction.atomic():
        standing = ImportPart.objects.filter(dataset=dataset).select_for_update(of=("self",))
        files = [each for part in standing for each in part.pool_files]
        deleted, _ = ImportPart.objects.filter(dataset=dataset).delete()
        transaction.on_commit(partial(pool_files.discard, files), robust=True)
        if deleted and not dataset.in_columns:
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM annotation_record WHERE dataset_id = %s", [dataset.pk])


def _take(dataset_id: int, before: int | None) -> ImportPart | None:
    """Lock the first free part of an upload that is still being read."""
    # Whoever keeps its rows looks after it until its hold lapses.
    free = _parts_under_way(dataset_id).filter(Q(held_until=None) | Q(held_until__lt=Now()), stored=False)
    if before is not None:
        free = free.filter(number__lt=before)
    locked = free.select_for_update(of=("self",), skip_locked=True).select_related("dataset__project")
    return locked.order_by("number").first()


def _parts_under_way(dataset_id: int) -> QuerySet[ImportPart]:
    parts = ImportPart.objects.filter(dataset=dataset_id, dataset__state=DatasetState.RECEIVING)
    stopped = ImportPart.objects.filter(dataset=dataset_id, odd=True)
    return parts.filter(~models.Exists(stopped), dataset__job__state=WorkState.RUNNING, dataset__job__cancelled_by="")


def _rows_before(part: ImportPart) -> int | None:
    """Count the rows of the parts before this one; None while one of them is not counted."""
    earlier = ImportPart.objects.filter(dataset=part.dataset_id, number__lt=part.number)
    if earlier.filter(row_count=None).exists():
        return None
    return int(earlier.aggregate(rows=Sum("row_count", default=0))["rows"])


def _store(part: ImportPart, comparison: ComparedRows, first_row: int, check: Check | None) -> None:
    """Read a part straight into the records, in the caller's transaction."""
    followed = _is_followed(part)
    with connection.cursor() as cursor, cursor.copy(RECORD_COPY) as copy:
        # Nothing else can be asked of the database until the COPY ends.
        writer = RecordWriter(copy, dataset_id=part.dataset_id, first_row=first_row)
        _read(part, comparison, writer, check, followed=followed)
        writer.close()
    part.stored = True
    part.save()


def _write_columns(part: ImportPart, comparison: ComparedRows, check: Check | None) -> None:
    """Read a part into columns, in the caller's transaction; where its rows begin need not be known."""
    writer = pool_files.PoolWriter(str(part.dataset.upload.name).rpartition("/")[0])
    try:
        _read(part, comparison, writer, check, followed=_is_followed(part))
        writer.close()
        part.pool_files = [asdict(each) for each in writer.written]
        part.stored = True
        part.save()
    except BaseException:
        writer.discard()
        raise


def _store_spooled(part: ImportPart, spool: RowSpool, check: Check | None) -> None:
    """Store rows that were kept once it is known where they begin; reads parts before them that nobody holds."""
    while (first_row := _rows_before(part)) is None:
        if check:
            check()
        held = _parts_under_way(part.dataset_id).filter(pk=part.pk, stored=False)
        if not held.update(held_until=attempts.lease_end()):
            return
        if not read_free_part(dataset_id=part.dataset_id, before=part.number, check=check):
            time.sleep(LOOK_AGAIN_SECONDS)
    with transaction.atomic():
        mine = _parts_under_way(part.dataset_id).filter(pk=part.pk, stored=False)
        # Somebody else may have taken it for lost, and whoever looked for a free part as it became a kept one may hold
        # its lock without reading it: skipping the row would leave it to nobody until the hold lapses.
        if mine.select_for_update(of=("self",)).first() is None:
            return
        if not _is_refused(part):
            with connection.cursor() as cursor, cursor.copy(RECORD_COPY) as copy:
                writer = RecordWriter(copy, dataset_id=part.dataset_id, first_row=first_row)
                spool.copy_into(writer)
                writer.close()
        ImportPart.objects.filter(pk=part.pk).update(stored=True, held_until=None)


def _read(part: ImportPart, comparison: ComparedRows, sink: Sink, check: Check | None, *, followed: bool) -> None:
    """Read a part, which another one follows or none, into a sink and note on it what was found."""
    dataset = part.dataset
    layout = mappings.layout_of(dataset.project, dataset.role, dataset.mapping)
    kept = str(dataset.upload.name)
    rows, report = 0, BadRowReport()
    with collector_paused(), default_storage.open(kept) as stored:
        file = cast(BinaryIO, stored)
        upload = Upload(file, kept, layout, maximum_bytes=settings.UPLOAD_MAX_BYTES)
        reader = PartReader(upload, file, first=part.first, stop=part.stop)
        for batch in reader.batches():
            if check:
                check()
            report.add(batch.bad)
            rows += batch.count
            if report.count and dataset.bad_rows == BadRows.REFUSE_ALL:
                continue  # nothing will be kept, but all bad rows are counted
            sink.write(batch)
            comparison.add(batch)
    if followed and not reader.is_whole:
        raise PartNotWhole(f"part {part.pk} of dataset {dataset.pk} ends within a row")
    part.row_count, part.line_count, part.unpacked_bytes = rows, reader.lines, reader.unpacked_bytes
    part.compared, part.shared = sorted(comparison.compared), comparison.shared
    part.bad_row_count, part.bad_row_report = report.count, [asdict(row) for row in report.kept]


def _is_followed(part: ImportPart) -> bool:
    return ImportPart.objects.filter(dataset=part.dataset_id, number__gt=part.number).exists()


def _is_refused(part: ImportPart) -> bool:
    """Say whether bad rows found so far let no row in, so that storing this part's would be in vain."""
    bad = ImportPart.objects.filter(dataset=part.dataset_id, bad_row_count__gt=0)
    return part.dataset.bad_rows == BadRows.REFUSE_ALL and bad.exists()


def _unpacks_to_too_much(parts: QuerySet[ImportPart]) -> bool:
    return bool(parts.aggregate(bytes=Sum("unpacked_bytes", default=0))["bytes"] > settings.UPLOAD_MAX_BYTES)
