"""Registered tables: addresses that the operator allows, the snapshot noted once, and rows where they lie."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import QuerySet

from annotation.choices.gates import run_event
from annotation.data.readers.pseudonyms import Pseudonyms
from annotation.data.readers.registered import CHANGED, TableColumns, TableFile, snapshot_of, table_files, table_rows
from annotation.data.readers.stores import (
    METADATA_ENDINGS,
    METADATA_FOLDER,
    METADATA_SUFFIX,
    NOT_ALLOWED,
    BucketTable,
    FolderTable,
    TableStore,
)
from annotation.data.services import mappings, uploads
from annotation.data.services.pseudonyms import table_key
from annotation.errors import InvalidUpload, TableChanged
from annotation.models import (
    Arrival,
    BadRows,
    DataKind,
    Dataset,
    DatasetRole,
    DatasetState,
    Oracle,
    PoolSource,
    Project,
    SourceFile,
)
from annotation.work.services import jobs
from privacy.gate.engine import ReadFile
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import quota_of
from privacy.wording import as_message

SCHEMES = ("file", "s3")
# Stands in POOL_SOURCES for the short name of the project that registers.
PROJECT = "{project}"


@dataclass(frozen=True, slots=True)
class Address:
    """A folder, a file or what begins with a prefix; none of its parts is `.` or `..`, and files have no bucket."""

    scheme: str
    bucket: str
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        joined = "/".join(self.parts)
        return f"/{joined}" if self.scheme == "file" else joined

    def is_below(self, other: "Address") -> bool:
        same = (self.scheme, self.bucket) == (other.scheme, other.bucket)
        return same and self.parts[: len(other.parts)] == other.parts


def store_at(text: str, *, slug: str) -> TableStore:
    address, root = checked_address(text, slug=slug)
    if address.scheme == "file":
        return FolderTable(Path(address.path), Path(root.path))
    stored: Any = default_storage
    if not hasattr(stored, "bucket_name"):
        raise InvalidUpload("address: s3:// needs a site whose own files lie in a bucket (STORAGE_URL)")
    return BucketTable(stored, address.bucket, address.path)


def checked_address(text: str, *, slug: str) -> tuple[Address, Address]:
    if not settings.POOL_SOURCES:
        raise InvalidUpload("address: this site registers no tables; its operator can allow them with POOL_SOURCES")
    address = _table_of(parsed(text))
    for allowed in settings.POOL_SOURCES:
        root = parsed(allowed.replace(PROJECT, slug))
        if address.is_below(root):
            return address, root
    raise InvalidUpload(NOT_ALLOWED)


def metadata_named(text: str) -> str | None:
    last = text.rstrip("/").rpartition("/")[2]
    return last if last.endswith(METADATA_SUFFIX) else None


def _table_of(address: Address) -> Address:
    if not address.parts or metadata_named(address.parts[-1]) is None:
        return address
    if address.parts[-2:-1] != (METADATA_FOLDER,):
        raise InvalidUpload("address: a metadata file of an Iceberg table lies in the folder metadata of its table")
    return Address(address.scheme, address.bucket, address.parts[:-2])


LOOKS = as_message(
    "address: looks like file:///folder/table or s3://bucket/table, without . or .., %, ?, #, \\, a key or a port"
)


def parsed(text: str) -> Address:
    """Return an address by its parts; it has no host but a bucket, and every part says what it means."""
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise InvalidUpload(
            as_message("address: begins with {possible}", possible=" or ".join(f"{one}://" for one in SCHEMES))
        )
    if (parts.scheme == "s3") != bool(parts.netloc) or not text.isprintable():
        raise InvalidUpload(LOOKS)
    if parts.query or parts.fragment or "%" in text or "\\" in text or "@" in parts.netloc or ":" in parts.netloc:
        raise InvalidUpload(LOOKS)
    names = tuple(name for name in parts.path.split("/") if name)
    if any(name in (".", "..") for name in names):
        raise InvalidUpload(LOOKS)
    return Address(parts.scheme, parts.netloc, names)


SECRET_BYTES = 32
UNREADABLE = as_message("address: the site may not read it; give its account access")
DELTA_LOG = "_delta_log"
DELTA = as_message("address: this is a Delta Lake table; write the version you need into its own folder")
ICEBERG = as_message("address: Iceberg tables need the add-on spark")
NO_SNAPSHOTS = as_message("snapshot: only Iceberg tables have snapshots, and this is none")
Check = Callable[[], None]


class TableFormat(Protocol):
    """Reads tables whose own metadata say which files belong to a snapshot."""

    def __call__(
        self, store: TableStore, named: str | None, columns: TableColumns, wanted: int | None, check: Check
    ) -> tuple[list[TableFile], dict[str, Any]] | None:
        """Return the files of the snapshot `wanted`, or the current one, and what is noted; None for another format."""


# Formats of add-ons, asked in turn.
FORMATS: list[TableFormat] = []


def open_source(dataset: Dataset, address: str, wanted: int | None = None) -> PoolSource:
    """Note where an upload's rows lie, and which snapshot is wanted, in the transaction that opens it."""
    secret = secrets.token_bytes(SECRET_BYTES)
    noted = None if wanted is None else {"snapshot": wanted}
    return PoolSource.objects.create(dataset=dataset, address=address, secret=secret, format_snapshot=noted)


def source_of(dataset: Dataset) -> PoolSource | None:
    return PoolSource.objects.select_related("dataset__project").filter(dataset=dataset).first()


def tables_of(project: Project) -> "QuerySet[PoolSource]":
    return PoolSource.objects.filter(dataset__project=project).exclude(dataset__state=DatasetState.REFUSED)


def projects_with_tables() -> tuple[str, ...]:
    found = PoolSource.objects.exclude(dataset__state=DatasetState.REFUSED)
    return tuple(found.order_by("dataset__project__slug").values_list("dataset__project__slug", flat=True).distinct())


def files_now(source: PoolSource, check: Check) -> tuple[list[TableFile], dict[str, Any] | None]:
    store, columns, wanted = _store_of(source), table_columns(source), source.snapshot_number
    named = metadata_named(source.address)
    with _as_unreadable():
        if named is None and store.names_in(DELTA_LOG, (".json",)):
            raise InvalidUpload(DELTA)
        for table_format in FORMATS:
            if (found := table_format(store, named, columns, wanted, check)) is not None:
                return found
        if named is not None or store.names_in(METADATA_FOLDER, METADATA_ENDINGS):
            raise InvalidUpload(ICEBERG)
        if wanted is not None:
            raise InvalidUpload(NO_SNAPSHOTS)
        return list(table_files(store, columns, check)), None


def note_files(source: PoolSource, found: list[TableFile], snapshot: dict[str, Any] | None) -> int:
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
    source.format_snapshot = snapshot
    source.snapshot = snapshot_of(found, secret=bytes(source.secret), noted=snapshot)
    source.save(update_fields=["snapshot", "format_snapshot"])
    return first


def refuse_changed(source: PoolSource, check: Check) -> list[TableFile]:
    """Return the files of the registered snapshot, or raise `TableChanged`; no row is read."""
    try:
        store = _store_of(source)
    except InvalidUpload as error:
        raise TableChanged(str(error)) from None
    names = None if source.format_snapshot is None else source.files.order_by("number").values_list("name", flat=True)
    try:
        with _as_unreadable():
            files = list(table_files(store, table_columns(source), check, names))
    except InvalidUpload:
        raise TableChanged(CHANGED) from None
    if snapshot_of(files, secret=bytes(source.secret), noted=source.format_snapshot) != source.snapshot:
        raise TableChanged(CHANGED)
    return files


def table_reader(source: PoolSource) -> ReadFile:
    store, columns = _store_of(source), table_columns(source)
    people = Pseudonyms(table_key(bytes(source.secret)))
    return lambda file, contributors: table_rows(store, file, columns, people if contributors else None)


def table_columns(source: PoolSource) -> TableColumns:
    mapping, ids = source.dataset.mapping, source.format_snapshot or {}
    return TableColumns(mapping["text"], mapping.get("contributor"), ids.get("text_id"), ids.get("contributor_id"))


def _store_of(source: PoolSource) -> TableStore:
    return store_at(source.address, slug=source.dataset.project.slug)


@contextmanager
def _as_unreadable() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise InvalidUpload(UNREADABLE) from None


CROWD_ONLY = as_message("address: only crowd projects with texts register tables; upload the records")
TOGETHER = as_message("address: snapshots of a table share records; use a project without gate_window")
UNPROVED = as_message(
    "address: this gate has no proof for registered tables; upload the records or choose another gate"
)
COUNTED = as_message("address: a population counts records per person; upload the records")
ALONE = as_message("role: registered rows are never compared; put public data into another project")
NO_NAMES = as_message("contributor: leave it out; this project protects records")


def register_table(
    *,
    project: Project,
    address: str,
    name: str = "",
    text: str = "text",
    contributor: str | None = None,
    snapshot: int | None = None,
    registered_by: AbstractBaseUser | None = None,
    send: bool = True,
) -> Dataset:
    """Note a table and have a worker read the ends of its files; no row is read before the gate has paid."""
    uploads.check_upload(project=project, role=DatasetRole.POOL, bad_rows=BadRows.KEEP_GOOD, size=0)
    _refuse_project(project)
    mapping = {"text": text} | ({"contributor": contributor} if contributor else {})
    layout = mappings.layout_of(project, DatasetRole.POOL, mapping)
    if contributor and not layout.contributor_required:
        raise InvalidUpload(NO_NAMES)
    jobs.refuse_when_busy()
    # Refuses what lies outside of what is allowed; what is there is for the worker to find out.
    store_at(address, slug=project.slug)
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        refuse_beside(project=project, role=DatasetRole.POOL, is_table=True)
        dataset = Dataset.objects.create(
            project=project,
            job=jobs.open_job(project=project, kind=jobs.IMPORT, owner=registered_by, send=send),
            name=(name or address.rstrip("/").rpartition("/")[2])[:200],
            role=DatasetRole.POOL,
            mapping=mapping,
            in_columns=True,
            uploaded_by=registered_by,  # type: ignore[misc]
        )
        open_source(dataset, address, snapshot)
    return dataset


def may_register(project: Project) -> bool:
    try:
        _refuse_project(project)
    except InvalidUpload:
        return False
    return True


def refuse_beside(*, project: Project, role: str, is_table: bool = False) -> None:
    """Raise `InvalidUpload` where a registered table and data of another role would stand side by side."""
    others = Dataset.objects.filter(project=project).exclude(state=DatasetState.REFUSED).exclude(role=role)
    if (is_table and others.exists()) or (role != DatasetRole.POOL and tables_of(project).exists()):
        raise InvalidUpload(ALONE)


def _refuse_project(project: Project) -> None:
    if (project.oracle, project.arrival, project.data_kind) != (Oracle.CROWD, Arrival.POOL, DataKind.TEXT):
        raise InvalidUpload(CROWD_ONLY)
    if project.gate_window is not None:
        raise InvalidUpload(TOGETHER)
    if not run_event(project.settings).proved_over_snapshots:
        raise InvalidUpload(UNPROVED)
    account = BudgetAccount.objects.get(pk=project.pool_account_id)
    if account.unit == "record" and quota_of(account) is not None:
        raise InvalidUpload(COUNTED)
