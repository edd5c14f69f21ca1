"""The rows of an upload as gates read them: from the columns in storage, or from the database where rows are kept."""

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from django.core.files.storage import default_storage

from annotation.models import Dataset, PoolPart, Record, SourceFile
from annotation.tables import sources
from privacy.engines.base import PoolFile, Tell
from privacy.errors import UnsoundCombination
from privacy.gate.columns import NOBODY, read_columns

BATCH_ROWS = 65_536
GATE_SCHEMA = pa.schema([("text", pa.large_string()), ("contributor", pa.binary(16))])
# A part may be rewritten while somebody reads the pool: the next look at the catalogue finds the new file.
TRIES = 5


def unheard(read: int) -> None:
    """Tell nobody."""


def records(dataset: Dataset, tell: Tell = unheard, *, contributors: bool = True) -> Iterator[pa.RecordBatch]:
    """Stream an upload in the order of its rows, which is the order of the coins."""
    if sources.source_of(dataset) is not None:
        raise UnsoundCombination("Rows of a registered table are read by its gate alone, which pays for it.")
    yield from (_columns if dataset.in_columns else _rows)(dataset, tell, contributors)


def records_of_all(uploads: Sequence[Dataset], tell: Tell) -> Iterator[pa.RecordBatch]:
    """Stream uploads one after the other; `tell` hears of the rows of all."""
    before = 0
    for upload in uploads:
        yield from records(upload, partial(_tell_after, tell, before))
        before += upload.row_count


def _tell_after(tell: Tell, before: int, read: int) -> None:
    tell(before + read)


def files_of(*uploads: Dataset) -> list[PoolFile]:
    """Return the files of uploads, one upload after the other, in the order of their rows."""
    files: list[PoolFile] = []
    first = 0
    for upload in uploads:
        # The site's own files, or those of a registered table, and never both.
        own = PoolPart.objects.filter(dataset=upload).values_list("pk", "file", "sha256", "row_count")
        registered = SourceFile.objects.filter(source=upload.pk).values_list("pk", "name", "sha256", "row_count")
        for pk, name, sha256, rows in (*own.order_by("number"), *registered.order_by("number")):
            files.append(PoolFile(pk, name, sha256, first, rows))
            first += rows
    return files


def file_rows(file: PoolFile, contributors: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part as it stands now."""
    content, sha256 = current_content(file)
    yield from read_columns(content, sha256, contributors=contributors)


def current_content(file: PoolFile) -> tuple[bytes, str]:
    """Return the bytes of a part as it stands now, and the digest they must have."""
    for _ in range(TRIES):
        part = PoolPart.objects.get(pk=file.number)
        try:
            return content_of(part), part.sha256
        except FileNotFoundError:
            continue
    raise FileNotFoundError(file.name)


def content_of(part: PoolPart) -> bytes:
    """Return the bytes of a part's file, unchecked."""
    with default_storage.open(part.file) as stored:
        content: bytes = stored.read()
    return content


def _columns(dataset: Dataset, tell: Tell, contributors: bool) -> Iterator[pa.RecordBatch]:
    for file in files_of(dataset):
        read = file.first_row
        for batch in file_rows(file, contributors):
            read += batch.num_rows
            tell(read)
            yield batch


def _rows(dataset: Dataset, tell: Tell, contributors: bool) -> Iterator[pa.RecordBatch]:
    rows = Record.objects.filter(dataset=dataset).order_by("row_number").values_list("text", "contributor", "emptied")
    texts: list[str | None] = []
    people: list[bytes | memoryview[int] | None] = []
    read = 0
    for text, contributor, emptied in rows.iterator(chunk_size=BATCH_ROWS):
        # An empty slot keeps its place among the coins, says nothing, and is nobody's.
        texts.append(text)
        people.append(NOBODY if emptied else contributor)
        if len(texts) == BATCH_ROWS:
            read += len(texts)
            tell(read)
            yield pa.record_batch([texts, people], schema=GATE_SCHEMA)
            texts, people = [], []
    yield pa.record_batch([texts, people], schema=GATE_SCHEMA)
