"""Readers of a registered table for executors: by the rules of one process, with nothing of the site but a key."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from addons.spark.jobs import FileReader, name_of
from addons.spark.stores import Bucket
from annotation.data.readers.pseudonyms import Pseudonyms
from annotation.data.readers.registered import TableColumns, check_unchanged, table_rows
from annotation.data.readers.stores import BucketTable, FolderTable, TableStore
from privacy.gate.engine import PoolFile, ReadFile


def folder_reader(place: Path, root: Path, columns: TableColumns, *, key: bytes) -> FileReader:
    return _reader({"place": str(place), "root": str(root)}, columns, key)


def bucket_reader(bucket: Bucket, columns: TableColumns, *, key: bytes) -> FileReader:
    return _reader({"bucket": asdict(bucket)}, columns, key)


def rows_reader(given: str) -> ReadFile:
    parameters = json.loads(given)
    store, columns = _store_of(parameters["store"]), TableColumns(**parameters["columns"])
    people = Pseudonyms(bytes.fromhex(parameters["key"]))
    return lambda file, named: table_rows(store, file, columns, people if named else None)


def looks(given: str) -> Callable[[PoolFile], None]:
    """Return what raises `TableChanged` unless a file stands here as it was registered; it reads no row."""
    store = _store_of(json.loads(given)["store"])
    return lambda file: check_unchanged(store, file)


def _reader(store: dict[str, Any], columns: TableColumns, key: bytes) -> FileReader:
    given = {"store": store, "columns": asdict(columns), "key": key.hex()}
    return FileReader(name_of(rows_reader), json.dumps(given), name_of(looks), needs="annotation")


def _store_of(given: dict[str, Any]) -> TableStore:
    if "bucket" not in given:
        return FolderTable(Path(given["place"]), Path(given["root"]))
    bucket = Bucket(**given["bucket"])
    return BucketTable(Objects(bucket), bucket.name, bucket.prefix)


class Objects:
    """Objects as `BucketTable` asks for them, by the key of the executor's own environment or role."""

    def __init__(self, bucket: Bucket) -> None:
        self._client = bucket.client()

    def object_version(self, bucket: str, key: str) -> tuple[int, str]:
        try:
            found = self._client.head_object(Bucket=bucket, Key=key)
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
                raise FileNotFoundError from None
            raise
        return found["ContentLength"], found["ETag"]

    def object_part(self, bucket: str, key: str, start: int, length: int, version: str) -> bytes:
        part = f"bytes={start}-{start + length - 1}"
        try:
            answer = self._client.get_object(Bucket=bucket, Key=key, Range=part, IfMatch=version)
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in ("412", "PreconditionFailed", "NoSuchKey"):
                raise FileNotFoundError from None
            raise
        content: bytes = answer["Body"].read()
        return content
