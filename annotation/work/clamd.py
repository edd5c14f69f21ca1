"""Asks clamd, the daemon of ClamAV, what it finds in a file: its INSTREAM command, in bounded memory.

Whatever cannot be understood counts as no answer, and never as a clean file.
"""

import re
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO
from urllib.parse import urlsplit

from annotation.errors import ScannerAway

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
        raise ScannerAway("nobody listens there") from error
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
        raise ScannerAway("it takes nothing more") from error
    return True


def _reply(connection: socket.socket, patience_seconds: float, check: Callable[[], None] = lambda: None) -> str:
    """Return a reply without the NUL that ends it; one that is cut off, or too long, is none."""
    reply, until = b"", time.monotonic() + patience_seconds
    while b"\0" not in reply:
        check()
        if time.monotonic() > until or len(reply) > REPLY_BYTES:
            raise ScannerAway("it does not answer")
        if not _speaks(connection, LISTEN_SECONDS):
            continue
        try:
            piece = connection.recv(REPLY_BYTES)
        except OSError as error:
            raise ScannerAway("it hung up") from error
        if not piece:
            raise ScannerAway("it hung up")
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
        raise ScannerAway("it answers with an error")
    if said[1].startswith(PARTLY_READ):
        return Found(too_large=True)
    # Names come from whoever wrote the signature, and are shown.
    return Found(name=re.sub(r"[^\w.:/()-]", "?", said[1], flags=re.ASCII)[:100])
