"""Connections that say nothing, or a byte a second."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from dpal_site.embedded import host

HEAD = b"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
Begin = Callable[..., socket.socket]


@contextlib.contextmanager
def slow_senders(url: str) -> Iterator[Begin]:
    """Open connections; what is left of `rest` is sent one byte a second until the end."""
    port = int(url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        dripping: list[tuple[socket.socket, bytearray]] = []
        done = threading.Event()

        def drip() -> None:
            while not done.wait(1):
                for connection, rest in dripping:
                    with contextlib.suppress(OSError):
                        connection.sendall(rest[:1])
                    del rest[:1]

        def begin(said: bytes, rest: bytes = b"") -> socket.socket:
            connection = stack.enter_context(socket.create_connection((host.LOOPBACK, port), 60))
            connection.sendall(said)
            if rest:
                dripping.append((connection, bytearray(rest)))
            return connection

        thread = threading.Thread(target=drip)
        thread.start()
        stack.callback(thread.join)
        stack.callback(done.set)
        yield begin


def besiege(slow: Begin) -> None:
    """Open half a hundred senders of each kind that once silenced a site whose threads waited for them."""
    for _ in range(30):
        slow(b"")
    for _ in range(30):
        slow(b"GET /login/ HT")
    for _ in range(7):
        slow(b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 500)
        slow(HEAD + b"Content-Length: 500\r\n\r\n", b"x" * 500)
        slow(HEAD + b"Content-Length: 5000000\r\n\r\n", b"x" * 500)
        slow(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1f4\r\n" + b"x" * 500)
        # Empty lines, and what comes behind a request that was answered.
        slow(b"\r\n\r\n")
        slow(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /heal")
        # Answered, and never closed by them.
        slow(b"GET /healthz HTTP/1.0\r\n\r\n")
