"""A connection whose other end must keep a pace while a thread waits for it."""

import errno
import socket
import time

# No single wait is longer.
PATIENCE_SECONDS = 20.0
# After so long, what has arrived must have come this fast: four times less than the slowest mobile network.
GRACE_SECONDS = 10.0
SLOWEST_BYTES_PER_SECOND = 4096
PIECE_BYTES = 64 * 1024


class TooSlow(ConnectionResetError):
    """The other end keeps no pace; for the server it has hung up."""

    def __init__(self) -> None:
        super().__init__(errno.ECONNRESET, "the other end is too slow")


class PacedSocket(socket.socket):
    """A socket that ends what is too slow, as if the other end had hung up."""

    _waited = 0.0
    _received = 0

    def setblocking(self, flag: bool) -> None:
        """Block with an end; who begins to block begins to count."""
        self.settimeout(PATIENCE_SECONDS if flag else 0.0)
        self._waited, self._received = 0.0, 0

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return what has arrived; only the time in here counts, not what the application takes between two pieces."""
        if self.gettimeout() == 0.0:
            return super().recv(size, flags)
        began = time.monotonic()
        try:
            data = super().recv(size, flags)
        except TimeoutError as late:
            raise TooSlow from late
        self._received += len(data)
        self._waited += time.monotonic() - began
        if data and self._waited > GRACE_SECONDS and self._received < SLOWEST_BYTES_PER_SECOND * self._waited:
            raise TooSlow
        return data

    def sendall(self, data: bytes, flags: int = 0) -> None:  # type: ignore[override]  # all that the server sends
        """Send all of it; every piece has the same patience."""
        view = memoryview(data)
        try:
            for start in range(0, len(view), PIECE_BYTES):
                super().sendall(view[start : start + PIECE_BYTES], flags)
        except TimeoutError as late:
            raise TooSlow from late
