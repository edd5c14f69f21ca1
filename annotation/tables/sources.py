"""Registered tables: their snapshot noted once, looked up again before a gate, and their rows where they lie."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from django.db.models import QuerySet

from annotation.errors import InvalidUpload, TableChanged
from annotation.models import Dataset, DatasetState, PoolSource, Project, SourceFile
from annotation.tables.addresses import metadata_named, store_at
from annotation.tables.footers import TableColumns, TableFile, snapshot_of, table_files
from annotation.tables.iceberg import NO_ICEBERG, IcebergSnapshot, metadata_file, read_snapshot
from annotation.tables.pseudonym_keys import table_key
from annotation.tables.pseudonyms import Pseudonyms
from annotation.tables.rows import CHANGED, parts_of, table_rows
from annotation.tables.shared import shared_table
from annotation.tables.stores import TableStore
from privacy.engines.base import FileReader, PoolFile, ReadFile
from privacy.wording import as_message

SECRET_BYTES = 32
UNREADABLE = as_message("address: the site cannot read what stands there; let its account read it")
Check = Callable[[], None]


def open_source(dataset: Dataset, address: str, wanted: int | None = None) -> PoolSource:
    """Note where an upload's rows lie, and which Iceberg snapshot is wanted, in the transaction that opens it."""
    secret = secrets.token_bytes(SECRET_BYTES)
    iceberg = None if wanted is None else {"snapshot": wanted}
    return PoolSource.objects.create(dataset=dataset, address=address, secret=secret, iceberg=iceberg)


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


def files_now(source: PoolSource, check: Check) -> tuple[list[TableFile], IcebergSnapshot | None]:
    """Return the files of a table from their footers, and its Iceberg snapshot if it has one.

    `InvalidUpload` names what stands in the way.
    """
    store, columns, wanted = _store_of(source), table_columns(source), source.iceberg_snapshot
    with _as_unreadable():
        metadata = metadata_file(store, metadata_named(source.address))
        if metadata is not None:
            snapshot, files = read_snapshot(store, metadata, columns, wanted, check)
            return files, snapshot
        if wanted is not None:
            raise InvalidUpload(NO_ICEBERG)
        return list(table_files(store, columns, check)), None


def note_files(source: PoolSource, found: list[TableFile], snapshot: IcebergSnapshot | None) -> int:
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
    source.iceberg = None if snapshot is None else snapshot.to_json()
    source.snapshot = snapshot_of(found, secret=bytes(source.secret), iceberg=source.iceberg)
    source.save(update_fields=["snapshot", "iceberg"])
    return first


def refuse_changed(source: PoolSource, check: Check) -> list[TableFile]:
    """Return the files of the snapshot, or raise `TableChanged` unless it is the one that was registered.

    No row is read for it.

    Files of an Iceberg snapshot are those it was registered with, whatever was written to the table since.
    """
    try:
        store = _store_of(source)
    except InvalidUpload as error:
        raise TableChanged(str(error)) from None
    names = None if source.iceberg is None else source.files.order_by("number").values_list("name", flat=True)
    try:
        with _as_unreadable():
            files = list(table_files(store, table_columns(source), check, names))
    except InvalidUpload:
        raise TableChanged(CHANGED) from None
    if snapshot_of(files, secret=bytes(source.secret), iceberg=source.iceberg) != source.snapshot:
        raise TableChanged(CHANGED)
    return files


def cut_by_groups(files: Sequence[TableFile]) -> Callable[[PoolFile], Iterator[PoolFile]]:
    """Return what cuts a file of a table into parts that executors read one by one."""
    groups = {file.name: file.group_rows for file in files}
    return lambda file: parts_of(file, groups[file.name])


def table_reader(source: PoolSource) -> ReadFile:
    """Return what reads the rows of a file of the table in this process."""
    store, columns = _store_of(source), table_columns(source)
    people = Pseudonyms(table_key(bytes(source.secret)))
    return lambda file, contributors: table_rows(store, file, columns, people if contributors else None)


def cluster_reader(source: PoolSource) -> FileReader:
    """Return what reads the rows of a file of the table, to the same byte, on executors of a cluster."""
    return shared_table(source, table_columns(source))


def table_columns(source: PoolSource) -> TableColumns:
    """Return which columns of the table are read."""
    mapping, ids = source.dataset.mapping, source.iceberg or {}
    return TableColumns(mapping["text"], mapping.get("contributor"), ids.get("text_id"), ids.get("contributor_id"))


def _store_of(source: PoolSource) -> TableStore:
    return store_at(source.address, slug=source.dataset.project.slug)


@contextmanager
def _as_unreadable() -> Iterator[None]:
    """Tell what a file system says as the rule of an address, without a path."""
    try:
        yield
    except OSError:
        raise InvalidUpload(UNREADABLE) from None
