"""Uploads pass the site's virus scanner, where it has one, before a worker reads a row of them."""

import re
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO
from urllib.parse import urlsplit

from django.conf import settings

from annotation.errors import ScannerAway, UploadRefused
from annotation.models import Job
from annotation.work.services import attempts
from privacy.wording import as_message

CHUNK_BYTES = 256 * 1024
REPLY_BYTES = 4096
CONNECT_SECONDS = 5.0
LISTEN_SECONDS = 1.0
# What clamd calls a file it read in part only, where `AlertExceedsMax` makes it say so.
PARTLY_READ = "Heuristics.Limits.Exceeded"


@dataclass(frozen=True, slots=True)
class Found:
    """The name of what is in a file, empty where nothing is; or that the file is more than the scanner reads."""

    name: str = ""
    too_large: bool = False


def scan(url: str, file: BinaryIO, *, patience_seconds: float, check: Callable[[], None]) -> Found:
    """Send a file from where it stands and return what the scanner says; `ScannerAway` where it says nothing clear."""
    with _connected(url, patience_seconds) as connection:
        return scan_connected(connection, file, patience_seconds=patience_seconds, check=check)


def scan_connected(
    connection: socket.socket, file: BinaryIO, *, patience_seconds: float, check: Callable[[], None]
) -> Found:
    if _sent(connection, b"zINSTREAM\0"):
        _send_pieces(connection, file, check)
    return _understood(_reply(connection, patience_seconds, check))


def scanner_listens(url: str) -> bool:
    try:
        with _connected(url, CONNECT_SECONDS) as connection:
            return _sent(connection, b"zPING\0") and _reply(connection, CONNECT_SECONDS) == "PONG"
    except ScannerAway:
        return False


def _connected(url: str, patience_seconds: float) -> socket.socket:
    parts = urlsplit(url)
    local = parts.scheme == "unix"
    connection = socket.socket(socket.AF_UNIX if local else socket.AF_INET)
    try:
        if local:
            connection.settimeout(CONNECT_SECONDS)
            connection.connect(parts.path)
        else:
            connection.close()
            connection = socket.create_connection((parts.hostname, parts.port), timeout=CONNECT_SECONDS)
        connection.settimeout(patience_seconds)
    except OSError as error:
        connection.close()
        raise ScannerAway("The virus scanner does not answer.") from error
    return connection


def _send_pieces(connection: socket.socket, file: BinaryIO, check: Callable[[], None]) -> None:
    while piece := file.read(CHUNK_BYTES):
        check()
        # It speaks before the end only to refuse, and reads no further.
        if _speaks(connection, 0) or not _sent(connection, len(piece).to_bytes(4, "big") + piece):
            return
    _sent(connection, bytes(4))


def _sent(connection: socket.socket, data: bytes) -> bool:
    """Send data; false where the scanner has hung up, which it does after a refusal that may still be read."""
    try:
        connection.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        return False
    except OSError as error:
        raise ScannerAway("The virus scanner does not answer.") from error
    return True


def _reply(connection: socket.socket, patience_seconds: float, check: Callable[[], None] = lambda: None) -> str:
    """Return a reply without the NUL that ends it; one that is cut off, or too long, is none."""
    reply, until = b"", time.monotonic() + patience_seconds
    while b"\0" not in reply:
        check()
        if time.monotonic() > until or len(reply) > REPLY_BYTES:
            raise ScannerAway("The virus scanner does not answer.")
        if not _speaks(connection, LISTEN_SECONDS):
            continue
        try:
            piece = connection.recv(REPLY_BYTES)
        except OSError as error:
            raise ScannerAway("The virus scanner does not answer.") from error
        if not piece:
            raise ScannerAway("The virus scanner does not answer.")
        reply += piece
    return reply.partition(b"\0")[0].decode(errors="replace").strip()


def _speaks(connection: socket.socket, seconds: float) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _understood(reply: str) -> Found:
    if reply == "stream: OK":
        return Found()
    if "size limit exceeded" in reply:
        return Found(too_large=True)
    said = re.fullmatch(r"stream: (.+) FOUND", reply)
    if said is None:
        raise ScannerAway("The virus scanner does not answer.")
    if said[1].startswith(PARTLY_READ):
        return Found(too_large=True)
    # Names come from whoever wrote the signature, and are shown.
    return Found(name=re.sub(r"[^\w.:/()-]", "?", said[1], flags=re.ASCII)[:100])


MAXIMUM_ATTEMPTS = 5


def is_on() -> bool:
    return settings.CLAMD_URL not in ("", "none")


def is_there() -> bool:
    return scanner_listens(settings.CLAMD_URL)


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
    found = scan(settings.CLAMD_URL, file, patience_seconds=settings.CLAMD_SECONDS, check=check)
    if found.name:
        raise UploadRefused(
            as_message(
                "The virus scanner found {name}. The file was deleted unread. Upload it again once it is clean.",
                name=found.name,
            )
        )
    if found.too_large:
        raise UploadRefused("The file is too large or too deeply packed for the virus scanner. Split it.")


def put_off(job: Job) -> None:
    """Have a file wait for the scanner: the next attempt follows once the lease has lapsed, and the last one fails."""
    if job.attempt < MAXIMUM_ATTEMPTS:
        attempts.note_interruption(row=job, error=as_message("The virus scanner does not answer."))
        return
    attempts.fail_work(
        row=job,
        error=as_message(
            "The virus scanner did not answer in {attempts} attempts. The file is kept, unread; start it again later.",
            attempts=MAXIMUM_ATTEMPTS,
        ),
    )
