"""A bucket of an S3 store as Django's storage: private, read whole or in part, never shown by address."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, BinaryIO, cast

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]
from storages.backends.s3 import S3Storage

from annotation.errors import StorageAway
from privacy.wording import as_message

# The last two: another version stands there.
MISSING = (404, "404", "NoSuchKey", "NotFound", 412, "412", "PreconditionFailed")


class ObjectStorage(S3Storage):  # type: ignore[misc]
    """A bucket; what the store says wrong is told as files are: missing, or the store away."""

    def fetch(self, name: str, target: BinaryIO) -> None:
        with _as_storage_errors(name):
            self.bucket.Object(self._normalize_name(name)).download_fileobj(target, Config=self.transfer_config)

    def read_part(self, name: str, start: int, length: int) -> bytes:
        part = f"bytes={start}-{start + length - 1}"
        with _as_storage_errors(name):
            answer = self.bucket.Object(self._normalize_name(name)).get(Range=part)
            return cast(bytes, answer["Body"].read())

    def objects_below(self, bucket: str, prefix: str) -> Iterator[tuple[str, int, str]]:
        """Yield key, size and version of what begins with a prefix, in a bucket that the same key may read."""
        pages = self.connection.meta.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        with _as_storage_errors(prefix):
            for page in pages:
                yield from ((one["Key"], one["Size"], one["ETag"]) for one in page.get("Contents", ()))

    def object_version(self, bucket: str, key: str) -> tuple[int, str]:
        with _as_storage_errors(key):
            found = self.connection.meta.client.head_object(Bucket=bucket, Key=key)
        return found["ContentLength"], found["ETag"]

    def object_part(self, bucket: str, key: str, start: int, length: int, version: str) -> bytes:
        part = f"bytes={start}-{start + length - 1}"
        with _as_storage_errors(key):
            answer = self.connection.meta.client.get_object(Bucket=bucket, Key=key, Range=part, IfMatch=version)
            return cast(bytes, answer["Body"].read())

    def check(self) -> None:
        """Ask the bucket for one name; `StorageAway` if it does not answer or does not let us."""
        with _as_storage_errors(self.location):
            self.connection.meta.client.list_objects_v2(Bucket=self.bucket_name, Prefix=self.location, MaxKeys=1)

    def url(self, name: str, *given: Any, **named: Any) -> str:
        """Refuse: who may read a file is for the site to say, each time."""
        raise NotImplementedError("files are sent by the site, which checks who asks")

    def exists(self, name: str) -> bool:
        with _as_storage_errors(name):
            return bool(super().exists(name))

    def delete(self, name: str) -> None:
        with _as_storage_errors(name):
            super().delete(name)

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        with _as_storage_errors(path):
            return cast("tuple[list[str], list[str]]", super().listdir(path))

    def get_modified_time(self, name: str) -> datetime:
        with _as_storage_errors(name):
            return cast(datetime, super().get_modified_time(name))

    def _open(self, name: str, mode: str = "rb") -> Any:
        with _as_storage_errors(name):
            file = super()._open(name, mode)
            if "w" not in mode:
                # Fetched now rather than at the first byte, where a parser would have to bear a store that is away.
                file.open()
            return file

    def _save(self, name: str, content: Any) -> str:
        with _as_storage_errors(name):
            return cast(str, super()._save(name, content))


@contextmanager
def _as_storage_errors(name: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in MISSING:
            raise FileNotFoundError(name) from error
        raise StorageAway(as_message("The file store does not answer. Start again later.")) from error
    except (BotoCoreError, Boto3Error) as error:
        raise StorageAway(as_message("The file store does not answer. Start again later.")) from error
