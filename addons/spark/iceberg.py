"""Iceberg tables (versions 1 and 2, of Parquet files) by their metadata: one snapshot, its files and columns by id."""

# Metadata name files by absolute addresses, but only their place below the table's own counts, so a table may be
# mounted elsewhere. A snapshot with delete files is refused: which rows they leave, only rows tell. Metadata and
# manifests, which repeat single texts as bounds of columns, are read in limited processes.

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any, BinaryIO

import fastavro

from annotation.data.readers.registered import (
    TableColumns,
    TableFile,
    no_column_of_texts,
    no_single_column,
    table_files,
)
from annotation.data.readers.stores import METADATA_ENDINGS, METADATA_FOLDER, StoredFile, TableStore, refuse_too_many
from annotation.errors import InvalidUpload
from annotation.work.limits import Answer, Job, LimitReached, Limits, run
from privacy.wording import in_english

NAMED = re.compile(r"v?(\d+)(?:-[^/]*?)?(\.gz)?\.metadata\.json(\.gz)?")
VERSIONS = (1, 2)
TEXTS, PEOPLE = ("string",), ("string", "int", "long")
COMPRESSED = in_english(
    "address: the newest metadata file of the Iceberg table is compressed; set its write.metadata.compression-codec "
    "to none"
)
TWO_NEWEST = in_english(
    "address: two metadata files of the Iceberg table are the newest; register the one that your catalogue names"
)
NONE_YET = in_english("address: the Iceberg table has no snapshot yet")
DELETES = in_english(
    "address: the Iceberg snapshot has delete files; rewrite its data files without them (compact it) and register the "
    "snapshot that comes of it"
)
NO_PARQUET = in_english("address: a data file of the Iceberg snapshot is encrypted or no Parquet file")
OUTSIDE = in_english("address: a file of the Iceberg snapshot lies outside the table's folder")
OTHER_FILE = in_english("address: a data file is not the one that the Iceberg snapshot names")
MOST_BYTES = 32 * 1024 * 1024
DELETED = 2
DAMAGED = in_english("address: the metadata of the Iceberg table cannot be read")
OTHER_CODEC = in_english(
    "address: the manifests of the Iceberg table are not compressed by deflate; set its write.avro.compression-codec "
    "to gzip and rewrite them"
)


@dataclass(frozen=True, slots=True)
class Manifest:
    path: str
    deletes: bool


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    kind: str
    size: int
    row_count: int
    encrypted: bool


def manifests_of(content: bytes) -> list[Manifest]:
    return [Manifest(**each) for each in _answer(read_manifests, content)]


def manifest_entries(content: bytes) -> list[Entry]:
    return [Entry(**each) for each in _answer(read_entries, content)]


def _answer(job: Job, content: bytes, **arguments: Any) -> Any:
    try:
        return next(run(job, BytesIO(content), Limits(), **arguments))[0]["found"]
    except LimitReached as reached:
        raise InvalidUpload(
            in_english("address: the metadata of the Iceberg table {reason}", reason=reached.reason)
        ) from None


def read_manifests(file: BinaryIO) -> Iterator[Answer]:
    with _as_damaged():
        found = [
            asdict(Manifest(str(each["manifest_path"]), each.get("content") not in (None, 0)))
            for each in _records(file)
        ]
    yield {"found": found}, b""


def read_entries(file: BinaryIO) -> Iterator[Answer]:
    with _as_damaged():
        found = [asdict(_entry(each["data_file"])) for each in _records(file) if each["status"] != DELETED]
    yield {"found": found}, b""


def _entry(file: Any) -> Entry:
    return Entry(
        path=str(file["file_path"]),
        kind=file["file_format"].upper(),
        size=int(file["file_size_in_bytes"]),
        row_count=int(file["record_count"]),
        encrypted=file.get("key_metadata") is not None,
    )


def _records(file: BinaryIO) -> Iterator[Any]:
    reader = fastavro.reader(file)
    if reader.codec not in ("null", "deflate"):
        raise InvalidUpload(OTHER_CODEC)
    yield from reader


@contextmanager
def _as_damaged() -> Iterator[None]:
    """Refuse a broken file in our own words: those of the library may quote column bounds."""
    try:
        yield
    except (InvalidUpload, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - told by its rule
        raise InvalidUpload(DAMAGED) from None


@dataclass(frozen=True, slots=True)
class IcebergSnapshot:
    table: str
    snapshot: int
    text_id: int
    contributor_id: int | None


@dataclass(frozen=True, slots=True)
class Metadata:
    """A snapshot by the metadata of its table; every file's address begins with `above`."""

    above: str
    manifests: str
    noted: IcebergSnapshot

    def name(self, address: str) -> str:
        plain = _plain(address)
        name = plain.removeprefix(self.above)
        if name == plain or not name.isprintable() or any(part in ("", ".", "..") for part in name.split("/")):
            raise InvalidUpload(OUTSIDE)
        return name


def read_metadata(file: BinaryIO, *, columns: dict[str, Any], wanted: int | None) -> Iterator[Answer]:
    """Yield a snapshot and where its manifests are listed; a job of a limited process."""
    with _as_damaged():
        content = json.load(file)
        if (version := content["format-version"]) not in VERSIONS:
            raise InvalidUpload(
                in_english(
                    "address: the Iceberg table is in version {version} of the format; 1 and 2 are read",
                    version=str(version),
                )
            )
        snapshot = _snapshot(content, wanted)
        fields = _fields(content, snapshot, wanted)
        roles = TableColumns(**columns).roles
        ids = {role: _id_of(fields, role, column) for role, column in roles if column is not None}
        noted = IcebergSnapshot(
            str(content.get("table-uuid", "")), int(snapshot["snapshot-id"]), ids["text"], ids.get("contributor")
        )
        found = Metadata(_plain(content["location"]).rstrip("/") + "/", str(snapshot["manifest-list"]), noted)
    yield {"found": asdict(found)}, b""


def _snapshot(content: dict[str, Any], wanted: int | None) -> dict[str, Any]:
    number = content.get("current-snapshot-id") if wanted is None else wanted
    found = [each for each in content.get("snapshots") or () if each["snapshot-id"] == number]
    if not found and wanted is not None:
        raise InvalidUpload(in_english("snapshot: the Iceberg table has no snapshot {number}", number=str(wanted)))
    if not found:
        raise InvalidUpload(NONE_YET)
    snapshot: dict[str, Any] = found[0]
    return snapshot


def _fields(content: dict[str, Any], snapshot: dict[str, Any], wanted: int | None) -> list[dict[str, Any]]:
    number = content.get("current-schema-id")
    number = number if wanted is None else snapshot.get("schema-id", number)
    schemas = content.get("schemas") or [content["schema"]]
    found = [each for each in schemas if each.get("schema-id") == number] or [schemas[-1]]
    fields: list[dict[str, Any]] = found[0]["fields"]
    return fields


def iceberg_table(
    store: TableStore, named: str | None, columns: TableColumns, wanted: int | None, check: Callable[[], None]
) -> tuple[list[TableFile], dict[str, Any]] | None:
    name = metadata_file(store, named)
    if name is None:
        return None
    snapshot, files = read_snapshot(store, name, columns, wanted, check)
    return files, asdict(snapshot)


def metadata_file(store: TableStore, named: str | None) -> str | None:
    if named is not None:
        return f"{METADATA_FOLDER}/{named}"
    names = store.names_in(METADATA_FOLDER, METADATA_ENDINGS)
    if not names:
        return None
    numbered = [(int(match[1]), name) for name in names if (match := NAMED.fullmatch(name))]
    if not numbered:
        raise InvalidUpload(DAMAGED)
    last = max(number for number, _ in numbered)
    newest = [name for number, name in numbered if number == last]
    if len(newest) > 1:
        raise InvalidUpload(TWO_NEWEST)
    return f"{METADATA_FOLDER}/{newest[0]}"


def read_snapshot(
    store: TableStore, name: str, columns: TableColumns, wanted: int | None, check: Callable[[], None]
) -> tuple[IcebergSnapshot, list[TableFile]]:
    """Return a snapshot and its data files from metadata and footers; `InvalidUpload` names the rule that is broken."""
    metadata = _metadata(store, name, columns, wanted)
    noted = metadata.noted
    entries = {metadata.name(entry.path): entry for entry in _entries(store, metadata, check)}
    refuse_too_many(list(entries))
    files = list(table_files(store, columns.by_id(noted.text_id, noted.contributor_id), check, sorted(entries)))
    for file in files:
        entry = entries[file.name]
        if (file.size, file.row_count) != (entry.size, entry.row_count):
            raise InvalidUpload(OTHER_FILE)
    return noted, files


def _metadata(store: TableStore, name: str, columns: TableColumns, wanted: int | None) -> Metadata:
    if name.endswith((".gz", ".gz.metadata.json")):
        raise InvalidUpload(COMPRESSED)
    content = _whole(store, store.find(name))
    found = _answer(read_metadata, content, columns=asdict(columns), wanted=wanted)
    return Metadata(**found | {"noted": IcebergSnapshot(**found["noted"])})


def _entries(store: TableStore, metadata: Metadata, check: Callable[[], None]) -> Iterator[Entry]:
    seen: set[str] = set()
    for manifest in manifests_of(_whole(store, store.find(metadata.name(metadata.manifests)))):
        check()
        for entry in manifest_entries(_whole(store, store.find(metadata.name(manifest.path)))):
            if manifest.deletes:
                raise InvalidUpload(DELETES)
            if entry.kind != "PARQUET" or entry.encrypted:
                raise InvalidUpload(NO_PARQUET)
            if entry.path in seen:
                raise InvalidUpload(DAMAGED)
            seen.add(entry.path)
            yield entry


def _whole(store: TableStore, file: StoredFile) -> bytes:
    if not 0 < file.size <= MOST_BYTES:
        raise InvalidUpload(DAMAGED)
    return store.read(file, 0, file.size)


def _id_of(fields: list[dict[str, Any]], role: str, name: str) -> int:
    found = [each for each in fields if each["name"] == name]
    if len(found) != 1:
        raise no_single_column(role, name)
    if found[0]["type"] not in (TEXTS if role == "text" else PEOPLE):
        raise no_column_of_texts(role, name)
    return int(found[0]["id"])


def _plain(address: str) -> str:
    scheme, colon, rest = address.partition(":")
    if not colon or scheme == "file":
        return "/" + (rest if colon else address).lstrip("/")
    return f"s3:{rest}" if scheme in ("s3", "s3a", "s3n") else address
