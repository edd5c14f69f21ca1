"""Scanners for tests: a small one that speaks clamd's protocol as it is told to, and a real one of Debian's."""

import contextlib
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from annotation.work import scanning
from dpal_site.embedded import host
from dpal_site.embedded.host import current_identity

INSTALL = "apt-get install clamav-daemon"
PATIENCE_SECONDS = 120
# Harmless by itself: what all scanners agree to take for a virus. In two halves, so that none takes this file for one.
EICAR = rb"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-STANDARD-" + rb"ANTIVIRUS-TEST-FILE!$H+H*"
CLEAN, INFECTED = b"stream: OK\0", b"stream: Eicar-Test-Signature FOUND\0"


class SmallScanner:
    def __init__(self, *pieces: bytes, takes: int | None = None, keeps_silent: bool = False) -> None:
        self.pieces, self._takes, self._keeps_silent = pieces, takes, keeps_silent
        self.received: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "SmallScanner":
        self._thread.start()
        return self

    def __exit__(self, *_about: object) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                self._answer(connection, stream)

    def _answer(self, connection, stream) -> None:
        command = b""
        while not command.endswith(b"\0"):
            command += stream.read(1)
        if command == b"zPING\0":
            connection.sendall(b"PONG\0")
            return
        assert command == b"zINSTREAM\0"
        got = b""
        while self._takes is None or len(got) < self._takes:
            length = int.from_bytes(stream.read(4), "big")
            if not length:
                break
            got += stream.read(length)
        self.received.append(got)
        if self._keeps_silent:
            self._over.wait()
        # Who is answered without end hangs up.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for piece in self.pieces:
                connection.sendall(piece)


class RealScanner:
    """A clamd of its own on a socket in `folder`: knows one signature, reads `limit`, and `files` of an archive."""

    def __init__(self, folder: Path, *, limit: str = "1M", files: int = 10_000) -> None:
        self.folder, self._limit, self._files = folder, limit, files
        self.url = f"unix://{folder}/clamd.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = shutil.which("clamd") or shutil.which("clamd", path="/usr/sbin")
        if program is None:
            pytest.skip(f"tests of the virus scanner skipped: no clamd found; {INSTALL}")
        self.folder.mkdir(mode=0o700, exist_ok=True)
        (self.folder / "signatures").mkdir(exist_ok=True)
        (self.folder / "signatures" / "test.ndb").write_text(f"Eicar-Test-Signature:0:*:{EICAR.hex()}\n")
        (self.folder / "clamd.conf").write_text(
            f"Foreground yes\nLocalSocket {self.folder}/clamd.sock\nLocalSocketMode 666\n"
            f"DatabaseDirectory {self.folder}/signatures\nTemporaryDirectory {self.folder}\n"
            f"StreamMaxLength {self._limit}\nMaxFileSize {self._limit}\nMaxFiles {self._files}\nAlertExceedsMax yes\n"
        )
        identity = current_identity()
        for above in self.folder.parents[:3]:
            above.chmod(above.stat().st_mode | 0o011)
        identity.own(self.folder)
        for each in self.folder.rglob("*"):
            identity.own(each)
        with (self.folder.parent / "clamd.log").open("ab") as log:
            command = identity.command(program, "--config-file", self.folder / "clamd.conf")
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        assert host.wait_until(lambda: scanning.scanner_listens(self.url), PATIENCE_SECONDS), host.tail(
            self.folder.parent / "clamd.log"
        )

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE_SECONDS)
            self._process = None
