"""Where executors of a cluster find what the site reads, without the site's key to it."""

from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage

from annotation.models import PoolSource
from annotation.tables.addresses import checked_address
from annotation.tables.executors import bucket_reader, folder_reader
from annotation.tables.footers import TableColumns
from annotation.tables.pseudonym_keys import table_key
from privacy.engines.base import FileReader
from privacy.engines.stores import Bucket, Folder


def shared_store() -> Folder | Bucket:
    """Return where the site's own files lie."""
    stored: Any = default_storage
    return bucket_of(stored.bucket_name, stored.location) if hasattr(stored, "bucket_name") else Folder(stored.location)


def shared_table(source: PoolSource, columns: TableColumns) -> FileReader:
    """Return what executors read a registered table by; its key makes pseudonyms of this registration alone."""
    address, root = checked_address(source.address, slug=source.dataset.project.slug)
    key = table_key(bytes(source.secret))
    if address.scheme == "file":
        return folder_reader(Path(address.path), Path(root.path), columns, key=key)
    return bucket_reader(bucket_of(address.bucket, address.path), columns, key=key)


def bucket_of(name: str, prefix: str) -> Bucket:
    """Return a bucket of the store where the site's own files lie."""
    stored: Any = default_storage
    style = stored.client_config.s3["addressing_style"]
    return Bucket(name, prefix, stored.endpoint_url, stored.region_name, style)
