"""Rows of an upload, read and stored in parts."""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import BinaryIO, cast

from celery import current_app
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import models, transaction
from django.db.models import QuerySet, Sum

from annotation.data.readers.parts import PartReader, find_cuts
from annotation.data.readers.reading import Upload
from annotation.data.services import mappings, pool_files, records
from annotation.data.services.registered import Check
from annotation.data.services.shared_rows import ComparedRows
from annotation.errors import InvalidUpload
from annotation.models import BadRows, Dataset, DatasetState, WorkState
from annotation.models.imports import ImportPart
from annotation.work.services import attempts
from annotation.work.services.attempts import collector_paused
from dpal.reading.rows import BadRow, BadRowReport

logger = logging.getLogger(__name__)
# A worker reads so much in a few seconds; handing smaller pieces around costs more than it saves.
PART_BYTES = 2**25
LOOK_AGAIN_SECONDS = 0.1
READ_TASK = "annotation.tasks.read_import_parts_task"
# More messages would wait for workers that nobody has.
MOST_HELPERS = 64
TellRows = Callable[[int, int, int], None]
Sink = records.EncodedRows | pool_files.PoolWriter


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
    while read_free_part(dataset_id=dataset_id):
        pass


def read_free_part(*, dataset_id: int, check: Check | None = None) -> bool:
    part: ImportPart | None = None
    try:
        with transaction.atomic():
            part = _take(dataset_id)
            if part is None:
                return False
            _write(part, check)
    except (InvalidUpload, PartNotWhole):
        assert part is not None
        ImportPart.objects.filter(pk=part.pk, stored=False).update(odd=True)
    return True


def collected(dataset: Dataset, comparison: ComparedRows) -> tuple[int, BadRowReport]:
    """Return the rows of all parts and their bad rows by the lines of the whole file; the comparison learns theirs."""
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
    for part in ImportPart.objects.filter(dataset=dataset).order_by("number"):
        yield from (pool_files.WrittenFile(**each) for each in part.pool_files)


def store_parts(dataset: Dataset, check: Check) -> None:
    """Make the rows of all parts those of the upload, and forget the parts, in the caller's transaction."""
    written = list(written_parts(dataset))
    if dataset.in_columns:
        pool_files.note_parts(dataset, written)
    else:
        records.copy_encoded(dataset, written, check)
        transaction.on_commit(partial(pool_files.discard, [asdict(each) for each in written]), robust=True)
    ImportPart.objects.filter(dataset=dataset).delete()


def discard_parts(dataset: Dataset) -> None:
    """Delete the parts and their files; waits for whoever is writing some at this moment."""
    with transaction.atomic():
        standing = ImportPart.objects.filter(dataset=dataset).select_for_update(of=("self",))
        files = [each for part in standing for each in part.pool_files]
        ImportPart.objects.filter(dataset=dataset).delete()
        transaction.on_commit(partial(pool_files.discard, files), robust=True)


def _take(dataset_id: int) -> ImportPart | None:
    free = _parts_under_way(dataset_id).filter(stored=False).select_related("dataset__project")
    return free.select_for_update(of=("self",), skip_locked=True).order_by("number").first()


def _parts_under_way(dataset_id: int) -> QuerySet[ImportPart]:
    parts = ImportPart.objects.filter(dataset=dataset_id, dataset__state=DatasetState.RECEIVING)
    stopped = ImportPart.objects.filter(dataset=dataset_id, odd=True)
    return parts.filter(~models.Exists(stopped), dataset__job__state=WorkState.RUNNING, dataset__job__cancelled_by="")


def _write(part: ImportPart, check: Check | None) -> None:
    folder = str(part.dataset.upload.name).rpartition("/")[0]
    writer: Sink = (pool_files.PoolWriter if part.dataset.in_columns else records.EncodedRows)(folder)
    try:
        _read(part, writer, check)
        writer.close()
        part.pool_files = [asdict(each) for each in writer.written]
        part.stored = True
        part.save()
    except BaseException:
        writer.discard()
        raise


def _read(part: ImportPart, sink: Sink, check: Check | None) -> None:
    dataset = part.dataset
    layout = mappings.layout_of(dataset.project, dataset.role, dataset.mapping)
    kept = str(dataset.upload.name)
    rows, report, comparison = 0, BadRowReport(), ComparedRows(dataset, keep=False)
    with collector_paused(), default_storage.open(kept) as stored:
        file = cast(BinaryIO, stored)
        upload = Upload(file, kept, layout, maximum_bytes=settings.UPLOAD_MAX_BYTES)
        reader = PartReader(upload, file, first=part.first, stop=part.stop)
        for read in reader.batches():
            if check:
                check()
            report.add(read.bad)
            batch = comparison.unshared(read)
            rows += batch.count
            if report.count and dataset.bad_rows == BadRows.REFUSE_ALL:
                continue  # nothing will be kept, but all bad rows are counted
            sink.write(batch)
            comparison.add(batch)
    followed = ImportPart.objects.filter(dataset=dataset, number__gt=part.number)
    if not reader.is_whole and followed.exists():
        raise PartNotWhole(f"part {part.pk} of dataset {dataset.pk} ends within a row")
    part.row_count, part.line_count, part.unpacked_bytes = rows, reader.lines, reader.unpacked_bytes
    part.compared, part.shared = sorted(comparison.compared), comparison.shared
    part.bad_row_count, part.bad_row_report = report.count, [asdict(row) for row in report.kept]


def _unpacks_to_too_much(parts: QuerySet[ImportPart]) -> bool:
    return bool(parts.aggregate(bytes=Sum("unpacked_bytes", default=0))["bytes"] > settings.UPLOAD_MAX_BYTES)
