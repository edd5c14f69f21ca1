"""Files as sent: what one must be to be kept, where it is kept, and who reads it within the site's limits."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.utils.crypto import salted_hmac

from annotation.data.readers.reading import Upload
from annotation.errors import InvalidUpload, StorageFull
from annotation.models import Arrival, BadRows, DatasetRole, Project
from annotation.work.services import interruptions
from dpal.reading.rows import FirstRows, Layout
from privacy.ledger.models import EntryKind, LedgerEntry
from privacy.wording import as_message, in_english

FOLDER = "datasets"
DRAFTS = "drafts"


def check_upload(*, project: Project, role: str, bad_rows: str, size: int) -> None:
    if role not in DatasetRole.values:
        raise InvalidUpload(in_english("role: must be one of {possible}", possible=", ".join(DatasetRole.values)))
    if role == DatasetRole.POOL and project.arrival == Arrival.STREAM:
        raise InvalidUpload(in_english("role: post private records of a stream over the REST interface"))
    if role == DatasetRole.PUBLIC_START and (rule := broken_start_rule(project)):
        raise InvalidUpload(as_message("role: {reason}", reason=rule))
    if bad_rows not in BadRows.values:
        raise InvalidUpload(in_english("bad_rows: must be one of {possible}", possible=", ".join(BadRows.values)))
    if size > settings.UPLOAD_MAX_BYTES:
        raise InvalidUpload(as_message("file: is larger than {most:,} bytes", most=settings.UPLOAD_MAX_BYTES))


def keyed_digest(file: "File[bytes]") -> str:
    """Return a digest of a file's bytes that says nothing without the site's key, and go back to its beginning."""
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    file.seek(0)
    return salted_hmac("annotation.upload", digest.digest(), algorithm="sha256").hexdigest()


def keep_file(file: "File[bytes]", name: str) -> str:
    with _refusing_without_room():
        try:
            return default_storage.save(name, file)
        except OSError:
            # The name is nobody else's: what lies there is the half that had room.
            default_storage.delete(name)
            raise


@contextmanager
def _refusing_without_room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in interruptions.NO_SPACE:
            raise StorageFull("The disk is full. Nothing was stored; tell your administrator.") from error
        raise


def broken_start_rule(project: Project) -> str:
    if project.arrival != Arrival.STREAM:
        return ""
    if LedgerEntry.objects.filter(account=project.pool_account_id, kind=EntryKind.RESERVE).exists():
        return as_message("the stream has begun; public examples must come before its first record")
    return ""


def open_upload(file: Any, name: str, layout: Layout, *, look: FirstRows | None = None) -> Upload:
    with _refusing_without_room():
        return Upload(cast("BinaryIO", file), name, layout, maximum_bytes=settings.UPLOAD_MAX_BYTES, look=look)
