"""Pools of a crowd as columns in storage, or as records: written while an upload is read, read by gates, emptied."""

# A file appears under a name of its own, whole or not at all; `PoolPart` takes it up in the transaction that makes
# the upload ready. Emptying writes another file and has `PoolPart` name that one.

import hashlib
import io
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import IO, Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import F, QuerySet, Sum
from numpy.typing import NDArray

from annotation.data.readers.pseudonyms import people_of
from annotation.data.services import registered
from annotation.data.services.pseudonyms import site_pseudonyms
from annotation.errors import UploadRefused
from annotation.models import Arrival, DataKind, Dataset, DatasetRole, Oracle, PoolPart, Project, Record, SourceFile
from annotation.models.imports import ImportPart
from annotation.work.services import files
from dpal.reading.rows import RowBatch
from privacy.errors import UnsoundCombination
from privacy.gate import columns
from privacy.gate.columns import NOBODY, read_columns
from privacy.gate.engine import PoolFile, Tell
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import quota_of

BATCH_ROWS = 65_536
GATE_SCHEMA = pa.schema([("text", pa.large_string()), ("contributor", pa.binary(16))])
# A part may be rewritten while somebody reads the pool: the next look at the catalogue finds the new file.
TRIES = 5


def unheard(read: int) -> None:
    """Tell nobody."""


def records(dataset: Dataset, tell: Tell = unheard, *, contributors: bool = True) -> Iterator[pa.RecordBatch]:
    if registered.source_of(dataset) is not None:
        raise UnsoundCombination("Rows of a registered table are read by its gate alone, which pays for it.")
    yield from (_columns if dataset.in_columns else _rows)(dataset, tell, contributors)


def records_of_all(uploads: Sequence[Dataset], tell: Tell) -> Iterator[pa.RecordBatch]:
    before = 0
    for upload in uploads:
        yield from records(upload, partial(_tell_after, tell, before))
        before += upload.row_count


def _tell_after(tell: Tell, before: int, read: int) -> None:
    tell(before + read)


def files_of(*uploads: Dataset) -> list[PoolFile]:
    found: list[PoolFile] = []
    first = 0
    for upload in uploads:
        # The site's own files, or those of a registered table, and never both.
        own = PoolPart.objects.filter(dataset=upload).values_list("pk", "file", "sha256", "row_count")
        elsewhere = SourceFile.objects.filter(source=upload.pk).values_list("pk", "name", "sha256", "row_count")
        for pk, name, sha256, rows in (*own.order_by("number"), *elsewhere.order_by("number")):
            found.append(PoolFile(pk, name, sha256, first, rows))
            first += rows
    return found


def file_rows(file: PoolFile, contributors: bool) -> Iterator[pa.RecordBatch]:
    content, sha256 = current_content(file)
    yield from read_columns(content, sha256, contributors=contributors)


def current_content(file: PoolFile) -> tuple[bytes, str]:
    for _ in range(TRIES):
        part = PoolPart.objects.get(pk=file.number)
        try:
            return content_of(part), part.sha256
        except FileNotFoundError:
            continue
    raise FileNotFoundError(file.name)


def content_of(part: PoolPart) -> bytes:
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


# Emptying one row writes so many again.
PART_ROWS = 262_144
PREFIX = "pool-"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    file: str
    sha256: str
    row_count: int
    named: bool


def lies_in_columns(project: Project, role: str) -> bool:
    """Say whether the rows of an upload go into columns in storage: those of a crowd's pool, which nobody is shown."""
    return (
        role == DatasetRole.POOL
        and project.oracle == Oracle.CROWD
        and project.data_kind == DataKind.TEXT
        and project.arrival == Arrival.POOL
        and not settings.POOLS_IN_DATABASE
        and not _is_counted(project)
    )


class PoolWriter:
    """Write rows into files beside the upload, `PART_ROWS` in each; `close` ends the last one."""

    def __init__(self, folder: str) -> None:
        self._base = f"{folder}/{PREFIX}{secrets.token_hex(8)}"
        self._pseudonyms = site_pseudonyms()
        self._spool: IO[bytes] | None = None
        self._writer: columns.ColumnsWriter | None = None
        self._named = False
        self.written: list[WrittenFile] = []
        self.rows = 0

    def write(self, batch: RowBatch) -> None:
        assert batch.texts is not None
        table = columns.pool_rows(batch.texts, people_of(batch.contributors, self._pseudonyms))
        self.rows += table.num_rows
        while table.num_rows:
            if self._writer is None:
                self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its writer
                self._writer = columns.ColumnsWriter(cast(BinaryIO, self._spool))
            room = PART_ROWS - self._writer.rows
            taken, table = table.slice(0, room), table.slice(room)
            self._named = self._named or taken["contributor"].null_count < taken.num_rows
            self._writer.write(taken)
            if self._writer.rows == PART_ROWS:
                self.close()

    def close(self) -> None:
        if self._writer is None or self._spool is None:
            return
        self._writer.close()
        name = f"{self._base}-{len(self.written)}.parquet"
        sha256 = store_file(self._spool, name)
        self.written.append(WrittenFile(name, sha256, self._writer.rows, self._named))
        self._spool.close()
        self._spool, self._writer, self._named = None, None, False

    def discard(self) -> None:
        if self._spool is not None:
            self._spool.close()
        discard([asdict(each) for each in self.written])


def note_parts(dataset: Dataset, written: Iterable[WrittenFile]) -> None:
    """Write the catalogue of a pool, in the transaction that makes it ready."""
    written = list(written)
    if _is_counted(dataset.project) and any(each.named for each in written):
        raise UploadRefused("Nothing was stored: the project joined a population meanwhile. Upload the file again.")
    first = 0
    parts = []
    for number, each in enumerate(written):
        parts.append(PoolPart(dataset=dataset, number=number, first_row=first, **asdict(each)))
        first += each.row_count
    PoolPart.objects.bulk_create(parts)


def discard(written: Iterable[dict[str, Any]]) -> None:
    for each in written:
        files.delete(each["file"])


def drop_unknown(dataset: Dataset) -> None:
    """Delete what lies beside the files of a ready pool and is none of them: what killed or replaced attempts left."""
    known = set(PoolPart.objects.filter(dataset=dataset).values_list("file", flat=True))
    for folder in {name.rpartition("/")[0] for name in known}:
        for name in list(files.names_in(folder)):
            if name.rpartition("/")[2].startswith(PREFIX) and name not in known:
                files.delete(name)


def known_files() -> set[str]:
    under_way = ImportPart.objects.exclude(pool_files=[]).values_list("pool_files", flat=True)
    return set(PoolPart.objects.values_list("file", flat=True)) | {each["file"] for part in under_way for each in part}


def is_known(name: str) -> bool:
    return (
        PoolPart.objects.filter(file=name).exists()
        or ImportPart.objects.filter(pool_files__contains=[{"file": name}]).exists()
    )


def contributor_parts(*, project: Project, contributor: bytes) -> Iterator[tuple[PoolPart, NDArray[np.int64]]]:
    for part in PoolPart.objects.filter(dataset__project=project, named=True).select_related("dataset").order_by("pk"):
        rows = columns.contributor_rows(content_of(part), part.sha256, contributor)
        if rows.size:
            yield part, rows


def uploads_naming(contributor: bytes) -> set[int]:
    found = set()
    for part in PoolPart.objects.filter(named=True).order_by("pk"):
        if part.dataset_id not in found:
            rows = columns.contributor_rows(content_of(part), part.sha256, contributor)
            found |= {part.dataset_id} if rows.size else set()
    return found


def empty_contributor(*, project: Project, contributor: bytes) -> int:
    """Empty all rows of a contributor, in the caller's transaction, which holds the project; return how many."""
    return sum(empty_part(part, rows) for part, rows in contributor_parts(project=project, contributor=contributor))


def empty_parts(parts: "QuerySet[PoolPart]") -> int:
    """Empty every row of some parts, in the caller's transaction, which holds the project; return how many."""
    return sum(empty_part(part, None) for part in parts.filter(emptied_count__lt=F("row_count")).order_by("pk"))


def empty_part(part: PoolPart, rows: NDArray[np.int64] | None) -> int:
    """Write a part again with some rows, or all, as empty slots; the old file goes with the caller's transaction."""
    old, before = part.file, part.emptied_count
    folder = old.rpartition("/")[0]
    with tempfile.TemporaryFile() as spool:
        target = cast(BinaryIO, spool)
        part.emptied_count = columns.emptied(content_of(part), part.sha256, rows, target)
        part.file = f"{folder}/{PREFIX}{secrets.token_hex(8)}-{part.number}.parquet"
        part.sha256 = store_file(spool, part.file)
    part.named = part.named and part.emptied_count < part.row_count
    part.save(update_fields=["file", "sha256", "emptied_count", "named"])
    # What fails here is found by `drop_unknown`.
    transaction.on_commit(lambda: files.delete(old), robust=True)
    return part.emptied_count - before


def emptied_datasets(project: Project) -> "QuerySet[Dataset]":
    return Dataset.objects.filter(project=project, pool_parts__emptied_count__gt=0).distinct()


def held_rows(parts: "QuerySet[PoolPart]") -> int:
    found = parts.aggregate(n=Sum(F("row_count") - F("emptied_count"), default=0))["n"]
    return int(found)


def _is_counted(project: Project) -> bool:
    account = BudgetAccount.objects.get(pk=project.pool_account_id)
    return account.unit == "record" and quota_of(account) is not None


def store_file(spool: IO[bytes], name: str) -> str:
    spool.seek(0)
    sha256 = hashlib.file_digest(cast(io.BufferedReader, spool), "sha256").hexdigest()
    spool.seek(0)
    stored = default_storage.save(name, File(spool))
    if stored != name:
        raise FileExistsError(name)
    return sha256
