"""A gunicorn worker whose threads are given whole requests, so that whoever sends slowly takes none of them.

The server's own worker gives a thread to a connection and lets it wait there for what the client will send: as many
silent or slow clients as there are threads keep everybody else out. Here the loop that accepts connections also reads
them, up to all of a short request; a thread gets it when it is there. Long bodies are read by threads, at most half of
them at once and at a pace (`sockets`). What lingers, or takes too long to say what it wants, costs a place in a table,
and where that is full the oldest goes first.
"""

import contextlib
import errno
import selectors
import socket
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker  # type: ignore[import-untyped]

from dpal_site.serving.arrival import ConnectionInput, arrived
from dpal_site.serving.sockets import PacedSocket

READ_BYTES = 64 * 1024
# From the first byte on; a connection that says nothing at all may stay as long as one that is kept.
REQUEST_SECONDS = 15.0
# For one of the places in which long bodies are read.
LONG_SECONDS = 60.0
MOST_LONG_WAITING = 32
# What was answered is let arrive before the connection is torn down.
LINGER_SECONDS = 2.0
# An ending process waits no longer for connections between two requests.
LAST_SECONDS = 2.0
REASON_LINES = {
    408: b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    431: b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    503: b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
}


@dataclass(eq=False, slots=True)
class _Client:
    """A connection that no thread is at."""

    conn: Any
    until: float
    brought: bytearray = field(default_factory=bytearray)
    lingers: bool = False


class WholeRequestWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Threads for requests that are there; one loop for all that is on its way."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.long_places = max(1, self.cfg.threads // 2)
        # In the order in which they came to wait.
        self._clients: dict[Any, _Client] = {}
        self._long: set[Any] = set()
        self._long_queue: deque[_Client] = deque()

    def accept(self, listener: Any) -> None:
        """Take a connection in; no thread hears of it before it has said what it wants."""
        try:
            accepted, address = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._make_room()
            elif error.errno not in (errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED):
                raise
            return
        self.nr_conns += 1
        paced = PacedSocket(fileno=accepted.detach())
        self.enqueue_req(TConn(self.cfg, paced, address, listener.getsockname()))

    def enqueue_req(self, conn: Any) -> None:
        """Wait for a whole request; what came with the last one is the beginning of it."""
        conn.sock.setblocking(False)
        brought = bytearray(conn.parser.unreader.take_buffered()) if conn.parser else bytearray()
        client = _Client(conn, self._end(REQUEST_SECONDS if brought else self.cfg.keepalive), brought)
        self._clients[conn] = client
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_readable, client))
        # Most have sent all of it by now.
        self._on_readable(client)

    def handle(self, conn: Any) -> Any:
        """Answer a request that has arrived; runs in a thread."""
        brought, conn.brought = conn.brought, b""
        conn.data_ready = True
        conn.init()
        conn.parser.unreader.unread(brought)
        return super().handle(conn)

    def finish_request(self, conn: Any, fs: "Future[Any]") -> None:
        """Keep the connection for the next request, or let the answer arrive and close it."""
        if conn in self._long:
            self._long.remove(conn)
            self._read_long()
        kept = not fs.cancelled() and fs.exception() is None and fs.result()
        try:
            if kept:
                self.enqueue_req(conn)
            else:
                self._linger(_Client(conn, 0.0))
        except (OSError, ValueError):  # closed by the thread that was at it
            self._clients.pop(conn, None)
            self._close(conn)

    def murder_keepalived(self, force: bool = False) -> None:
        """Close what has waited too long; where places run out, what has waited longest."""
        now = time.monotonic()
        while self._long_queue and (force or self._long_queue[0].until <= now):
            self._end_with(self._long_queue.popleft(), 503)
        for client in [each for each in self._clients.values() if force or each.until <= now]:
            late = not client.lingers and arrived(client.brought) is ConnectionInput.PART
            self._end_with(client, 408) if late and not force else self._drop(client)
        if self.alive and self.nr_conns >= self.worker_connections:
            self._make_room()

    def _cap_keepalive(self, deadline: float) -> None:
        for client in [*self._clients.values(), *self._long_queue]:
            client.until = min(client.until, deadline)

    def _on_readable(self, client: _Client, _socket: Any = None) -> None:
        """Read what is there, and hand over what is whole."""
        ended = False
        try:
            data = client.conn.sock.recv(READ_BYTES)
            ended = not data
        except BlockingIOError:
            data = b""
        except OSError:
            data, ended = b"", True
        if client.lingers:
            if ended:
                self._drop(client)
            return
        if data and not client.brought:
            client.until = self._end(REQUEST_SECONDS)
        # Empty lines before a request are no part of it, and the server's reader would wait behind them.
        client.brought = bytearray((client.brought + data).lstrip(b"\r\n"))
        self._sort(client, ended=ended)

    def _sort(self, client: _Client, *, ended: bool) -> None:
        come = arrived(client.brought)
        if come is ConnectionInput.WHOLE:
            self._forget(client)
            self._answer(client)
        elif come is ConnectionInput.LONG and len(self._long_queue) >= MOST_LONG_WAITING:
            self._end_with(client, 503)
        elif come is ConnectionInput.LONG:
            self._forget(client)
            client.until = self._end(LONG_SECONDS)
            self._long_queue.append(client)
            self._read_long()
        elif come is ConnectionInput.TOO_LONG:
            self._end_with(client, 431)
        elif ended:
            self._drop(client)

    def _make_room(self) -> None:
        for client in list(self._clients.values())[: max(1, self.worker_connections // 8)]:
            self._drop(client)

    def _read_long(self) -> None:
        while self._long_queue and len(self._long) < self.long_places:
            client = self._long_queue.popleft()
            self._long.add(client.conn)
            self._answer(client)

    def _answer(self, client: _Client) -> None:
        client.conn.brought = bytes(client.brought)
        super().enqueue_req(client.conn)

    def _end_with(self, client: _Client, status: int) -> None:
        """Say in a line why nothing comes, if it can be said without waiting."""
        self._forget(client)
        with contextlib.suppress(OSError):
            client.conn.sock.send(REASON_LINES[status])
        self._linger(client)

    def _linger(self, client: _Client) -> None:
        """Close our half and wait, in no thread, until the other half is closed: else what was sent may be torn off."""
        client.conn.sock.setblocking(False)
        with contextlib.suppress(OSError):
            client.conn.sock.shutdown(socket.SHUT_WR)
        client.lingers, client.until = True, self._end(LINGER_SECONDS)
        self._clients[client.conn] = client
        self.poller.register(client.conn.sock, selectors.EVENT_READ, partial(self._on_readable, client))

    def _drop(self, client: _Client) -> None:
        self._forget(client)
        self._close(client.conn)

    def _forget(self, client: _Client) -> None:
        if self._clients.pop(client.conn, None) is not None:
            with contextlib.suppress(KeyError, ValueError, OSError):
                self.poller.unregister(client.conn.sock)

    def _close(self, conn: Any) -> None:
        self.nr_conns -= 1
        conn.close()

    def _end(self, seconds: float) -> float:
        return time.monotonic() + (seconds if self.alive else min(seconds, LAST_SECONDS))
