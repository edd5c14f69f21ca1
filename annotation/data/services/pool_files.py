"""Pools of a crowd as columns in storage: written while an upload is read, emptied where somebody is forgotten.

A file appears under a name of its own, whole or not at all, and the catalogue (`PoolPart`) takes it up in the
transaction that makes the upload ready. Emptying writes another file and has the catalogue name that one; the old one
goes once this is durable, and what a killed attempt left of either goes with the next.
"""

import hashlib
import io
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import F, QuerySet, Sum
from numpy.typing import NDArray

from annotation.data.readers.rows import RowBatch
from annotation.errors import UploadRefused
from annotation.gates.services import pool_rows
from annotation.models import Arrival, DataKind, Dataset, DatasetRole, Oracle, PoolPart, Project
from annotation.models.imports import ImportPart
from annotation.tables.pseudonym_keys import site_pseudonyms
from annotation.tables.pseudonyms import Pseudonyms
from annotation.work.services import files
from privacy.gate import columns
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import quota_of

# Emptying one row writes so many again.
PART_ROWS = 262_144
PREFIX = "pool-"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of columns that no catalogue names yet."""

    file: str
    sha256: str
    row_count: int
    named: bool


def lies_in_columns(project: Project, role: str) -> bool:
    """Say whether the rows of an upload go into columns in storage, and none of them into the database.

    Those of a crowd's pool do, which nobody is shown: unless the site keeps all rows in the database, or the database
    has to count how many a person of a population brought.
    """
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
        """Write every row of a batch."""
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
        """Store the file that is being written, if one is."""
        if self._writer is None or self._spool is None:
            return
        self._writer.close()
        name = f"{self._base}-{len(self.written)}.parquet"
        sha256 = _stored(self._spool, name)
        self.written.append(WrittenFile(name, sha256, self._writer.rows, self._named))
        self._spool.close()
        self._spool, self._writer, self._named = None, None, False

    def discard(self) -> None:
        """Delete all files: nobody will take them up."""
        if self._spool is not None:
            self._spool.close()
        discard([asdict(each) for each in self.written])


def people_of(names: Sequence[str | None] | None, pseudonyms: Pseudonyms) -> pa.Array | None:
    """Return the pseudonyms of a batch's contributors; None where no column names them."""
    if names is None:
        return None
    # Few people bring many rows, and each is hashed once a batch.
    named = pa.array(names, pa.large_string()).dictionary_encode()
    people = pa.array([pseudonyms.of(name) for name in named.dictionary.to_pylist()], pa.binary(16))
    return people.take(named.indices)


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
    """Delete files that no catalogue names."""
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
    """Return the names of all files of columns that belong to an upload, or to one that is being read."""
    under_way = ImportPart.objects.exclude(pool_files=[]).values_list("pool_files", flat=True)
    return set(PoolPart.objects.values_list("file", flat=True)) | {each["file"] for part in under_way for each in part}


def is_known(name: str) -> bool:
    """Say whether a file of columns belongs to an upload by now."""
    return (
        PoolPart.objects.filter(file=name).exists()
        or ImportPart.objects.filter(pool_files__contains=[{"file": name}]).exists()
    )


def contributor_parts(*, project: Project, contributor: bytes) -> Iterator[tuple[PoolPart, NDArray[np.int64]]]:
    """Yield the parts that hold rows of a contributor, with these rows; only private uploads are kept so."""
    for part in PoolPart.objects.filter(dataset__project=project, named=True).select_related("dataset").order_by("pk"):
        rows = columns.contributor_rows(pool_rows.content_of(part), part.sha256, contributor)
        if rows.size:
            yield part, rows


def uploads_naming(contributor: bytes) -> set[int]:
    """Return the uploads of the whole site in which a contributor has rows."""
    found = set()
    for part in PoolPart.objects.filter(named=True).order_by("pk"):
        if part.dataset_id not in found:
            rows = columns.contributor_rows(pool_rows.content_of(part), part.sha256, contributor)
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
        part.emptied_count = columns.emptied(pool_rows.content_of(part), part.sha256, rows, target)
        part.file = f"{folder}/{PREFIX}{secrets.token_hex(8)}-{part.number}.parquet"
        part.sha256 = _stored(spool, part.file)
    part.named = part.named and part.emptied_count < part.row_count
    part.save(update_fields=["file", "sha256", "emptied_count", "named"])
    # What fails here is found by `drop_unknown`.
    transaction.on_commit(lambda: files.delete(old), robust=True)
    return part.emptied_count - before


def emptied_datasets(project: Project) -> "QuerySet[Dataset]":
    """Return the uploads in columns that have empty slots."""
    return Dataset.objects.filter(project=project, pool_parts__emptied_count__gt=0).distinct()


def held_rows(parts: "QuerySet[PoolPart]") -> int:
    """Return how many rows of some parts are not empty."""
    found = parts.aggregate(n=Sum(F("row_count") - F("emptied_count"), default=0))["n"]
    return int(found)


def _is_counted(project: Project) -> bool:
    """Say whether the database counts how many records each person of a population brought to a project."""
    account = BudgetAccount.objects.get(pk=project.pool_account_id)
    return account.unit == "record" and quota_of(account) is not None


def _stored(spool: IO[bytes], name: str) -> str:
    """Store a finished file under a name nobody has, and return its digest."""
    spool.seek(0)
    sha256 = hashlib.file_digest(cast(io.BufferedReader, spool), "sha256").hexdigest()
    spool.seek(0)
    stored = default_storage.save(name, File(spool))
    if stored != name:
        raise FileExistsError(name)
    return sha256
