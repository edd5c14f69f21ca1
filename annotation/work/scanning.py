"""Uploads pass the site's virus scanner, where it has one, before a worker reads a row of them."""

from collections.abc import Callable
from io import BytesIO
from typing import BinaryIO

from django.conf import settings

from annotation.errors import ScannerAway, UploadRefused
from annotation.models import Job
from annotation.work import clamd
from annotation.work.services import attempts
from privacy.wording import as_message

MAXIMUM_ATTEMPTS = 5


def is_on() -> bool:
    return settings.CLAMD_URL not in ("", "none")


def is_there() -> bool:
    return clamd.scanner_listens(settings.CLAMD_URL)


def scan_upload(file: BinaryIO, lease: attempts.Lease) -> None:
    """Let a file pass that the scanner read whole without finding anything, and go back to its start."""
    if not is_on():
        return
    lease.report(message=as_message("the virus scanner reads the file"))
    _let_pass(file, lease.check)
    file.seek(0)


def scan_picture(data: bytes) -> None:
    if is_on():
        _let_pass(BytesIO(data), lambda: None)


def _let_pass(file: BinaryIO, check: Callable[[], None]) -> None:
    found = clamd.scan(settings.CLAMD_URL, file, patience_seconds=settings.CLAMD_SECONDS, check=check)
    if found.name:
        raise UploadRefused(
            as_message(
                "The virus scanner found {name} in the file. Nothing was read, and the file is deleted here. "
                "Look where it came from, and upload it again once it is clean.",
                name=found.name,
            )
        )
    if found.too_large:
        raise UploadRefused(
            "The file is larger, or packed deeper, than the virus scanner reads, so nothing was read. Split it, "
            "or have the administrator raise the scanner's limits."
        )


def put_off(job: Job, away: ScannerAway) -> None:
    """Have a file wait for the scanner: the next attempt follows once the lease has lapsed, and the last one fails."""
    if job.attempt < MAXIMUM_ATTEMPTS:
        attempts.note_interruption(
            row=job, error=as_message("The virus scanner gives no answer: {reason}. It is asked again.", reason=away)
        )
        return
    attempts.fail_work(
        row=job,
        error=as_message(
            "The virus scanner gave no answer in {attempts} attempts: {reason}. Nothing was read. The file is kept; "
            "start it again once the scanner answers.",
            reason=away,
            attempts=MAXIMUM_ATTEMPTS,
        ),
    )
