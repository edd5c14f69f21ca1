"""A proxy that cuts a connection or changes what passes."""

import contextlib
import select
import socket
import threading
from collections.abc import Iterator

from dpal_site.embedded import host

BLOCK = 65536


class Between:
    """A port that hands connections on to another one, and answers back as long as it is told to.

    Attributes
    ----------
    cut_after : int or None
        How many bytes of answers pass before every connection is closed; None for all of them.
    change : tuple of bytes or None
        What to look for in answers, and what to put in its place, of the same length.
    passed, changed : int
        Bytes of answers that passed, and how often something was changed in them.
    """

    def __init__(self, behind: int) -> None:
        self._behind = behind
        self._listener = socket.create_server((host.LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut_after: int | None = None
        self.change: tuple[bytes, bytes] | None = None
        self.passed = self.changed = 0

    @property
    def url(self) -> str:
        return f"http://{host.LOOPBACK}:{self.port}"

    @contextlib.contextmanager
    def running(self) -> Iterator["Between"]:
        thread = threading.Thread(target=self._accept)
        thread.start()
        try:
            yield self
        finally:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            thread.join(120)
            self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                outer, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(outer,), daemon=True).start()

    def _carry(self, outer: socket.socket) -> None:
        with contextlib.suppress(OSError), outer, socket.create_connection((host.LOOPBACK, self._behind)) as inner:
            while True:
                ready, _, _ = select.select([outer, inner], [], [], 60)
                for each in ready:
                    block = each.recv(BLOCK)
                    if not block:
                        return
                    if each is outer:
                        inner.sendall(block)
                        continue
                    if self.change is not None:
                        self.changed += block.count(self.change[0])
                        block = block.replace(*self.change)
                    if self.cut_after is not None:
                        block = block[: max(0, self.cut_after - self.passed)]
                    outer.sendall(block)
                    self.passed += len(block)
                    if self.cut_after is not None and self.passed >= self.cut_after:
                        return
