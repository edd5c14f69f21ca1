"""Where a table may lie: below a folder or a bucket that the operator allows, and nowhere that `..` or a link leads."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from annotation.errors import InvalidUpload
from privacy.wording import say

SCHEMES = ("file", "s3")
# Stands in POOL_SOURCES for the short name of the project that registers.
PROJECT = "{project}"
NOT_ALLOWED = say("address: lies outside what the operator allows this project in POOL_SOURCES")


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


def checked_address(text: str, *, slug: str) -> tuple[Address, Address]:
    """Return an address and the allowed place above it; `InvalidUpload` names the rule that it breaks.

    Nothing is looked up: what lies outside is refused alike whether it is there or not.
    """
    if not settings.POOL_SOURCES:
        raise InvalidUpload("address: this site registers no tables; its operator sets POOL_SOURCES to allow them")
    address = parsed(text)
    for allowed in settings.POOL_SOURCES:
        root = parsed(allowed.replace(PROJECT, slug))
        if address.is_below(root):
            return address, root
    raise InvalidUpload(NOT_ALLOWED)


def parsed(text: str) -> Address:
    """Return an address by its parts; it has no host but a bucket, and every part says what it means."""
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise InvalidUpload(
            say("address: begins with {possible}", possible=" or ".join(f"{one}://" for one in SCHEMES))
        )
    if (parts.scheme == "s3") != bool(parts.netloc) or not text.isprintable():
        raise InvalidUpload("address: looks like file:///folder/table or s3://bucket/table")
    if parts.query or parts.fragment or "%" in text or "\\" in text or "@" in parts.netloc or ":" in parts.netloc:
        raise InvalidUpload("address: is a path alone, without %, ?, #, \\, a key or a port")
    names = tuple(name for name in parts.path.split("/") if name)
    if any(name in (".", "..") for name in names):
        raise InvalidUpload("address: has no part . or .., since it must lie where it seems to")
    return Address(parts.scheme, parts.netloc, names)
