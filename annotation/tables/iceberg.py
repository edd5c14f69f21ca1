"""Iceberg tables by their own metadata: one snapshot, its data files, and its columns by their ids.

Read are versions 1 and 2 of the format, of Parquet files below the table's folder. Metadata name files by absolute
addresses; what counts is where they lie below the table's own, so a table may be mounted, or copied, elsewhere. A
snapshot with delete files is refused: which rows they leave would have to be found by reading rows.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from annotation.errors import InvalidUpload
from annotation.tables.footers import TableColumns, TableFile, no_column_of_texts, no_single_column, table_files
from annotation.tables.manifests import DAMAGED, MOST_BYTES, Entry, manifest_entries, manifests_of
from annotation.tables.stores import METADATA_FOLDER, StoredFile, TableStore, refuse_too_many
from privacy.wording import as_message

NAMED = re.compile(r"v?(\d+)(?:-[^/]*?)?(\.gz)?\.metadata\.json(\.gz)?")
ENDS = (".metadata.json", ".metadata.json.gz")
DELTA_LOG = "_delta_log"
VERSIONS = (1, 2)
TEXTS, PEOPLE = ("string",), ("string", "int", "long")
DELTA = as_message("address: a Delta Lake table stands there; write the version you mean into a folder of its own")
COMPRESSED = as_message(
    "address: the newest metadata file of the Iceberg table is compressed; set its write.metadata.compression-codec "
    "to none"
)
TWO_NEWEST = as_message(
    "address: two metadata files of the Iceberg table are the newest; register the one that your catalogue names"
)
NONE_YET = as_message("address: the Iceberg table has no snapshot yet")
NO_ICEBERG = as_message("snapshot: only an Iceberg table has snapshots to choose from, and none stands at the address")
DELETES = as_message(
    "address: the Iceberg snapshot has delete files; rewrite its data files without them (compact it) and register the "
    "snapshot that comes of it"
)
NO_PARQUET = as_message("address: a data file of the Iceberg snapshot is encrypted or no Parquet file")
OUTSIDE = as_message("address: a file of the Iceberg snapshot lies outside the table's folder")
OTHER_FILE = as_message("address: a data file is not the one that the Iceberg snapshot names")


@dataclass(frozen=True, slots=True)
class IcebergSnapshot:
    """A snapshot as a registration notes it: table, number, and the ids of its columns."""

    table: str
    snapshot: int
    text_id: int
    contributor_id: int | None

    def to_json(self) -> dict[str, Any]:
        """Return what is kept of it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata file of a table, as far as it counts here."""

    content: dict[str, Any]
    # What every file's address begins with.
    above: str

    def snapshot(self, wanted: int | None) -> dict[str, Any]:
        """Return the snapshot of a number, or the current one."""
        number = self.content.get("current-snapshot-id") if wanted is None else wanted
        found = [each for each in self.content.get("snapshots") or () if each["snapshot-id"] == number]
        if not found and wanted is not None:
            raise InvalidUpload(as_message("snapshot: the Iceberg table has no snapshot {number}", number=str(wanted)))
        if not found:
            raise InvalidUpload(NONE_YET)
        snapshot: dict[str, Any] = found[0]
        return snapshot

    def fields(self, snapshot: dict[str, Any], wanted: int | None) -> list[dict[str, Any]]:
        """Return the columns as they are named: by now, or of a snapshot of a number when it was written."""
        number = self.content.get("current-schema-id")
        number = number if wanted is None else snapshot.get("schema-id", number)
        schemas = self.content.get("schemas") or [self.content["schema"]]
        found = [each for each in schemas if each.get("schema-id") == number] or [schemas[-1]]
        fields: list[dict[str, Any]] = found[0]["fields"]
        return fields

    def name(self, address: str) -> str:
        """Return the name of a file below the table's folder."""
        plain = _plain(address)
        name = plain.removeprefix(self.above)
        if name == plain or not name.isprintable() or any(part in ("", ".", "..") for part in name.split("/")):
            raise InvalidUpload(OUTSIDE)
        return name


def metadata_file(store: TableStore, named: str | None) -> str | None:
    """Return a table's metadata file: the one that is named, or the newest; None where it is no Iceberg table."""
    if named is not None:
        return f"{METADATA_FOLDER}/{named}"
    if store.names_in(DELTA_LOG, (".json",)):
        raise InvalidUpload(DELTA)
    names = store.names_in(METADATA_FOLDER, ENDS)
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
    metadata = _metadata(store, name)
    try:
        found = metadata.snapshot(wanted)
        number, fields, manifests = found["snapshot-id"], metadata.fields(found, wanted), found["manifest-list"]
        ids = {role: _id_of(fields, role, column) for role, column in columns.roles if column is not None}
        noted = IcebergSnapshot(
            str(metadata.content.get("table-uuid", "")), number, ids["text"], ids.get("contributor")
        )
    except (KeyError, TypeError, AttributeError, IndexError):
        raise InvalidUpload(DAMAGED) from None
    entries = {metadata.name(entry.path): entry for entry in _entries(store, metadata, manifests, check)}
    refuse_too_many(list(entries))
    files = list(table_files(store, columns.by_id(noted.text_id, noted.contributor_id), check, sorted(entries)))
    for file in files:
        entry = entries[file.name]
        if (file.size, file.row_count) != (entry.size, entry.row_count):
            raise InvalidUpload(OTHER_FILE)
    return noted, files


def _metadata(store: TableStore, name: str) -> Metadata:
    if name.endswith((".gz", ".gz.metadata.json")):
        raise InvalidUpload(COMPRESSED)
    try:
        content = json.loads(_whole(store, store.find(name)))
        version, above = content["format-version"], _plain(content["location"]).rstrip("/") + "/"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidUpload(DAMAGED) from None
    if version not in VERSIONS:
        raise InvalidUpload(
            as_message(
                "address: the Iceberg table is in version {version} of the format; 1 and 2 are read",
                version=str(version),
            )
        )
    return Metadata(content, above)


def _entries(store: TableStore, metadata: Metadata, listed: str, check: Callable[[], None]) -> Iterator[Entry]:
    """Yield the data files of a snapshot, each once."""
    seen: set[str] = set()
    for manifest in manifests_of(_whole(store, store.find(metadata.name(listed)))):
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
    """Return an address in one way of the several that writers have for it."""
    scheme, colon, rest = address.partition(":")
    if not colon or scheme == "file":
        return "/" + (rest if colon else address).lstrip("/")
    return f"s3:{rest}" if scheme in ("s3", "s3a", "s3n") else address
