"""Stores in which executors find the files of a pool: a folder they all see, or a bucket, by a key of their own."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from addons.spark.jobs import FileReader, name_of
from privacy.gate.columns import read_columns
from privacy.gate.engine import ReadFile


class Store(Protocol):
    """Returns stored bytes by name; it is sent to other hosts, so it holds no secret."""

    def content(self, name: str) -> bytes:
        """Return the bytes of a file, or raise `FileNotFoundError`."""


@dataclass(frozen=True, slots=True)
class Folder:
    path: str

    def content(self, name: str) -> bytes:
        return (Path(self.path) / name).read_bytes()


@dataclass(frozen=True, slots=True)
class Bucket:
    """Objects of an S3 store; the key is what the executor's own environment, or role, has."""

    name: str
    prefix: str = ""
    endpoint_url: str | None = None
    region: str | None = None
    addressing_style: str = "auto"

    def content(self, name: str) -> bytes:
        client = self.client()
        try:
            stored: bytes = client.get_object(Bucket=self.name, Key="/".join(filter(None, (self.prefix, name))))[
                "Body"
            ].read()
        except client.exceptions.NoSuchKey:
            raise FileNotFoundError(name) from None
        return stored

    def client(self) -> Any:
        import boto3  # noqa: PLC0415 - slow import
        from botocore.config import Config  # type: ignore[import-untyped]  # noqa: PLC0415 - slow import

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint_url,
            region_name=self.region,
            config=Config(
                signature_version="s3v4",
                s3={"addressing_style": self.addressing_style},
                connect_timeout=5,
                read_timeout=60,
                retries={"mode": "standard", "max_attempts": 4},
            ),
        )


KINDS: Final = {"folder": Folder, "bucket": Bucket}


def as_json(store: Folder | Bucket) -> dict[str, Any]:
    kind = next(name for name, each in KINDS.items() if isinstance(store, each))
    return {"kind": kind, "of": asdict(store)}


def from_json(given: dict[str, Any]) -> Store:
    store: Store = KINDS[given["kind"]](**given["of"])
    return store


def columns_in(store: Folder | Bucket) -> FileReader:
    return FileReader(name_of(column_reader), json.dumps(as_json(store)))


def column_reader(given: str) -> ReadFile:
    store = from_json(json.loads(given))
    return lambda file, named: read_columns(store.content(file.name), file.sha256, contributors=named)
