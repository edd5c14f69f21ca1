"""TLS before a server whose build has none, as the embedded ones: what a client must check is then really checked."""

import contextlib
import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

from dpal_site.embedded import host

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
PATIENCE_SECONDS = 60


class TlsFront:
    """Hand each connection on once it is encrypted; with `asks_first` in the way of Postgres, else at once."""

    def __init__(self, behind: int, certificate: Path, key: Path, *, asks_first: bool = False) -> None:
        self._behind, self._asks_first = behind, asks_first
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server((host.LOOPBACK, 0), backlog=128)
        self._open: set[socket.socket] = set()
        self.port: int = self._listener.getsockname()[1]
        self.served = 0

    @contextlib.contextmanager
    def running(self) -> Iterator["TlsFront"]:
        thread = threading.Thread(target=self._accept)
        thread.start()
        try:
            yield self
        finally:
            for each in (self._listener, *self._open):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE_SECONDS)
            self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            # One thread for both directions: two must not use one TLS connection at once.
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        plain.settimeout(PATIENCE_SECONDS)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(plain.close)
            if self._asks_first and not _agrees(plain):
                return
            outer = stack.enter_context(self._context.wrap_socket(plain, server_side=True))
            inner = stack.enter_context(socket.create_connection((host.LOOPBACK, self._behind)))
            outer.settimeout(None)
            self.served += 1
            self._open |= {outer, inner}
            stack.callback(self._open.difference_update, {outer, inner})
            _carry(outer, inner)


def _agrees(plain: socket.socket) -> bool:
    """Answer what a Postgres client says before anything else; say whether it goes on with TLS."""
    while True:
        _, wish = struct.unpack("!II", plain.recv(8, socket.MSG_WAITALL).ljust(8, b"\0"))
        if wish != GSS_REQUEST:
            break
        plain.sendall(b"N")
    if wish == SSL_REQUEST:
        plain.sendall(b"S")
    return bool(wish == SSL_REQUEST)


def _carry(outer: ssl.SSLSocket, inner: socket.socket) -> None:
    while True:
        ready = [outer] if outer.pending() else select.select([outer, inner], [], [])[0]
        for each in ready:
            if not (data := each.recv(65_536)):
                return
            (inner if each is outer else outer).sendall(data)
