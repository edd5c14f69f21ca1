"""Iceberg tables as the format's description has them: data files, manifests, lists of these, and metadata."""

import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tests.gate_scans import PEOPLE, TEXTS

COLUMNS = {"said": 1, "who": 2, "note": 3}
SCHEMA = [
    {"id": 1, "name": "said", "required": False, "type": "string"},
    {"id": 2, "name": "who", "required": False, "type": "string"},
    {"id": 3, "name": "note", "required": False, "type": "string"},
    {"id": 4, "name": "share", "required": False, "type": "double"},
]
MANIFEST_LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
        {"name": "content", "type": "int", "default": 0, "field-id": 517},
        {"name": "added_snapshot_id", "type": "long", "field-id": 503},
    ],
}
BOUNDS = {
    "type": "array",
    "logicalType": "map",
    "items": {
        "type": "record",
        "name": "k126_v127",
        "fields": [
            {"name": "key", "type": "int", "field-id": 126},
            {"name": "value", "type": "bytes", "field-id": 127},
        ],
    },
}
MANIFEST = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "snapshot_id", "type": ["null", "long"], "default": None, "field-id": 1},
        {
            "name": "data_file",
            "field-id": 2,
            "type": {
                "type": "record",
                "name": "r2",
                "fields": [
                    {"name": "content", "type": "int", "default": 0, "field-id": 134},
                    {"name": "file_path", "type": "string", "field-id": 100},
                    {"name": "file_format", "type": "string", "field-id": 101},
                    {"name": "partition", "type": {"type": "record", "name": "r102", "fields": []}, "field-id": 102},
                    {"name": "record_count", "type": "long", "field-id": 103},
                    {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
                    {"name": "lower_bounds", "type": ["null", BOUNDS], "default": None, "field-id": 125},
                    {"name": "key_metadata", "type": ["null", "bytes"], "default": None, "field-id": 131},
                ],
            },
        },
    ],
}


class Lake:
    """One table, of which each `commit` writes another snapshot and another metadata file.

    Parameters
    ----------
    folder : Path
        Where it lies.
    location : str, optional
        What its metadata call that place.
    """

    def __init__(self, folder: Path, *, location: str | None = None, version: int = 2) -> None:
        self.folder, self.location, self.version = folder, location or folder.as_uri(), version
        self.schemas: list[list[dict[str, Any]]] = [SCHEMA]
        self.snapshots: list[dict[str, Any]] = []
        self.codec = "deflate"
        for each in ("data", "metadata"):
            (folder / each).mkdir(parents=True, exist_ok=True)

    def data_file(self, name: str, texts: Any, people: Any, *, ids: Any = COLUMNS, **changed: Any) -> dict[str, Any]:
        """Write rows, and return how a manifest has them; `ids` is how the file calls which columns."""
        held = {"said": texts, "who": people, "note": ["not read"] * len(texts)}
        by_id = {COLUMNS[column]: held[column] for column in held}
        fields = [pa.field(column, pa.string(), metadata=_id(number)) for column, number in ids.items()]
        path = self.folder / "data" / name
        pq.write_table(pa.table([by_id.get(number, texts) for number in ids.values()], schema=pa.schema(fields)), path)
        return {
            "content": 0,
            "file_path": f"{self.location}/data/{name}",
            "file_format": "PARQUET",
            "partition": {},
            "record_count": len(texts),
            "file_size_in_bytes": path.stat().st_size,
            "lower_bounds": [{"key": 1, "value": min((text for text in texts if text), default="").encode()}],
            "key_metadata": None,
        } | changed

    def manifest(self, name: str, files: list[dict[str, Any]], *, status: int = 1, content: int = 0) -> dict[str, Any]:
        entries = [{"status": status, "snapshot_id": 1, "data_file": file} for file in files]
        size = self._avro(name, MANIFEST, entries)
        return {
            "manifest_path": f"{self.location}/metadata/{name}",
            "manifest_length": size,
            "partition_spec_id": 0,
            "content": content,
            "added_snapshot_id": 1,
        }

    def commit(self, manifests: list[dict[str, Any]], **changed: Any) -> int:
        """Write a snapshot of these manifests and the metadata that have it as the current one; return its number."""
        number = 7_000_000_000_000_000_000 + len(self.snapshots)
        listed = f"snap-{number}.avro"
        self._avro(listed, MANIFEST_LIST, manifests)
        at = f"{self.location}/metadata/{listed}"
        snapshot = {"snapshot-id": number, "manifest-list": at, "schema-id": len(self.schemas) - 1}
        self.snapshots.append(snapshot)
        self.describe(**changed)
        return number

    def describe(self, name: str | None = None, **changed: Any) -> Path:
        schemas = [{"schema-id": number, "type": "struct", "fields": each} for number, each in enumerate(self.schemas)]
        current = self.snapshots[-1]["snapshot-id"] if self.snapshots else -1
        metadata = {
            "format-version": self.version,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": self.location,
            "current-schema-id": len(self.schemas) - 1,
            "schemas": schemas,
            "current-snapshot-id": current,
            "snapshots": self.snapshots,
        }
        count = len(list((self.folder / "metadata").glob("*.metadata.json")))
        path = self.folder / "metadata" / (name or f"{count:05}-5f8b14ea.metadata.json")
        path.write_text(json.dumps(metadata | changed))
        return path

    def _avro(self, name: str, schema: Any, records: list[dict[str, Any]]) -> int:
        path = self.folder / "metadata" / name
        with path.open("wb") as file:
            fastavro.writer(file, fastavro.parse_schema(schema), records, codec=self.codec)
        return path.stat().st_size


def write_iceberg(folder: Path, *, files: int = 3, texts: Any = TEXTS, people: Any = PEOPLE, **options: Any) -> Lake:
    lake = Lake(folder, **options)
    size = -(-len(texts) // files)
    cuts = [slice(number * size, (number + 1) * size) for number in range(files)]
    written = [lake.data_file(f"part-{number}.parquet", texts[cut], people[cut]) for number, cut in enumerate(cuts)]
    lake.commit([lake.manifest("first.avro", written)])
    return lake


def _id(number: int | None) -> dict[str, str] | None:
    return None if number is None else {"PARQUET:field_id": str(number)}
