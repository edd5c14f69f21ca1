"""Registered tables: their snapshot noted once, looked up again before a gate, and their rows where they lie."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from django.db.models import QuerySet

from annotation.errors import InvalidUpload, TableChanged
from annotation.models import Dataset, DatasetState, PoolSource, Project, SourceFile
from annotation.tables.footers import TableColumns, TableFile, snapshot_of, table_files
from annotation.tables.rows import CHANGED, table_rows
from annotation.tables.stores import TableStore, store_at
from privacy.engines.base import PoolFile
from privacy.wording import say

SECRET_BYTES = 32
UNREADABLE = say("address: the site cannot read what stands there; let its account read it")
Check = Callable[[], None]


def open_source(dataset: Dataset, address: str) -> PoolSource:
    """Note where an upload's rows lie, in the transaction that opens it."""
    return PoolSource.objects.create(dataset=dataset, address=address, secret=secrets.token_bytes(SECRET_BYTES))


def source_of(dataset: Dataset) -> PoolSource | None:
    """Return the table whose rows an upload is, or None where they are the site's own."""
    return PoolSource.objects.select_related("dataset__project").filter(dataset=dataset).first()


def tables_of(project: Project) -> "QuerySet[PoolSource]":
    """Return the registered tables of a project, and those that are being registered."""
    return PoolSource.objects.filter(dataset__project=project).exclude(dataset__state=DatasetState.REFUSED)


def projects_with_tables() -> tuple[str, ...]:
    """Return the short names of projects of the whole site that have registered tables."""
    found = PoolSource.objects.exclude(dataset__state=DatasetState.REFUSED)
    return tuple(found.order_by("dataset__project__slug").values_list("dataset__project__slug", flat=True).distinct())


def files_now(source: PoolSource, check: Check) -> list[TableFile]:
    """Return the files as they stand now, from their footers; `InvalidUpload` names what stands in the way."""
    with _told():
        return list(table_files(_store_of(source), table_columns(source), check))


def note_files(source: PoolSource, found: list[TableFile]) -> int:
    """Write the catalogue of a table, in the transaction that makes it ready; return its rows."""
    first = 0
    files = []
    for number, file in enumerate(found):
        files.append(
            SourceFile(
                source=source,
                number=number,
                name=file.name,
                first_row=first,
                row_count=file.row_count,
                sha256=file.sha256,
            )
        )
        first += file.row_count
    SourceFile.objects.bulk_create(files)
    source.snapshot = snapshot_of(found, secret=bytes(source.secret))
    source.save(update_fields=["snapshot"])
    return first


def refuse_changed(source: PoolSource, check: Check) -> None:
    """Raise `TableChanged` unless the snapshot is the one that was registered; no row is read for it."""
    try:
        _store_of(source)
    except InvalidUpload as error:
        raise TableChanged(str(error)) from None
    try:
        now = snapshot_of(files_now(source, check), secret=bytes(source.secret))
    except InvalidUpload:
        now = ""
    if now != source.snapshot:
        raise TableChanged(CHANGED)


def table_reader(source: PoolSource) -> Callable[[PoolFile, bool], Iterator[pa.RecordBatch]]:
    """Return what reads the rows of a file of the table."""
    store, columns = _store_of(source), table_columns(source)
    return lambda file, contributors: table_rows(store, file, columns, contributors=contributors)


def table_columns(source: PoolSource) -> TableColumns:
    """Return which columns of the table are read."""
    mapping = source.dataset.mapping
    return TableColumns(mapping["text"], mapping.get("contributor"))


def _store_of(source: PoolSource) -> TableStore:
    return store_at(source.address, slug=source.dataset.project.slug)


@contextmanager
def _told() -> Iterator[None]:
    """Tell what a file system says as the rule of an address, without a path."""
    try:
        yield
    except OSError:
        raise InvalidUpload(UNREADABLE) from None
