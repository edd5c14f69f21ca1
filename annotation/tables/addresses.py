"""Where a table may lie: below a folder or a bucket that the operator allows, and nowhere that `..` or a link leads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.files.storage import default_storage

from annotation.errors import InvalidUpload
from annotation.tables.stores import METADATA_FOLDER, METADATA_SUFFIX, NOT_ALLOWED, BucketTable, FolderTable, TableStore
from privacy.wording import as_message

SCHEMES = ("file", "s3")
# Stands in POOL_SOURCES for the short name of the project that registers.
PROJECT = "{project}"


@dataclass(frozen=True, slots=True)
class Address:
    """A folder, a file or what begins with a prefix.

    Parameters
    ----------
    scheme : {"file", "s3"}
        How it is read.
    bucket : str
        Of `s3`; empty for files.
    parts : tuple of str
        Names on the way to it, none of them `.` or `..`.
    """

    scheme: str
    bucket: str
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        """The path on a file system, or the key in a bucket."""
        joined = "/".join(self.parts)
        return f"/{joined}" if self.scheme == "file" else joined

    def is_below(self, other: "Address") -> bool:
        """Say whether it is `other` or lies below it."""
        same = (self.scheme, self.bucket) == (other.scheme, other.bucket)
        return same and self.parts[: len(other.parts)] == other.parts


def store_at(text: str, *, slug: str) -> TableStore:
    """Return the store of a table; `InvalidUpload` where its address is not allowed (any more)."""
    address, root = checked_address(text, slug=slug)
    if address.scheme == "file":
        return FolderTable(Path(address.path), Path(root.path))
    stored: Any = default_storage
    if not hasattr(stored, "bucket_name"):
        raise InvalidUpload("address: s3:// is read by sites alone whose own files lie in a bucket (STORAGE_URL)")
    return BucketTable(stored, address.bucket, address.path)


def checked_address(text: str, *, slug: str) -> tuple[Address, Address]:
    """Return where a table lies and the allowed place above it; `InvalidUpload` names the rule that it breaks.

    Nothing is looked up: what lies outside is refused alike whether it is there or not.
    """
    if not settings.POOL_SOURCES:
        raise InvalidUpload("address: this site registers no tables; its operator sets POOL_SOURCES to allow them")
    address = _table_of(parsed(text))
    for allowed in settings.POOL_SOURCES:
        root = parsed(allowed.replace(PROJECT, slug))
        if address.is_below(root):
            return address, root
    raise InvalidUpload(NOT_ALLOWED)


def metadata_named(text: str) -> str | None:
    """Return the metadata file of an Iceberg table that an address names, or None where it names the table itself."""
    last = text.rstrip("/").rpartition("/")[2]
    return last if last.endswith(METADATA_SUFFIX) else None


def _table_of(address: Address) -> Address:
    """Return the folder of the table whose metadata file an address names, or the address itself."""
    if not address.parts or metadata_named(address.parts[-1]) is None:
        return address
    if address.parts[-2:-1] != (METADATA_FOLDER,):
        raise InvalidUpload("address: a metadata file of an Iceberg table lies in the folder metadata of its table")
    return Address(address.scheme, address.bucket, address.parts[:-2])


def parsed(text: str) -> Address:
    """Return an address by its parts; it has no host but a bucket, and every part says what it means."""
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise InvalidUpload(
            as_message("address: begins with {possible}", possible=" or ".join(f"{one}://" for one in SCHEMES))
        )
    if (parts.scheme == "s3") != bool(parts.netloc) or not text.isprintable():
        raise InvalidUpload("address: looks like file:///folder/table or s3://bucket/table")
    if parts.query or parts.fragment or "%" in text or "\\" in text or "@" in parts.netloc or ":" in parts.netloc:
        raise InvalidUpload("address: is a path alone, without %, ?, #, \\, a key or a port")
    names = tuple(name for name in parts.path.split("/") if name)
    if any(name in (".", "..") for name in names):
        raise InvalidUpload("address: has no part . or .., since it must lie where it seems to")
    return Address(parts.scheme, parts.netloc, names)
