"""A database that says nothing is found out by whoever waits for it, and then asked by one thread at a time.

A statement has a time limit that the server keeps. One that stands still, frozen or behind a dead network, keeps none:
the kernel takes what we send, and nobody ever answers. So whoever waits counts the silence. After a few seconds of it a
new connection is tried; where that is not answered either, every wait of this process ends, and until the server is
heard again one thread at a time asks for it, while the others are refused at once.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.waiting import Ready

Value = TypeVar("Value")
# A statement may take longer; then the server at least takes new connections.
QUIET_SECONDS = 5.0
# For an answer of a server that was silent, and for every new connection.
ASK_SECONDS = 3


class DatabaseSilent(psycopg.OperationalError):
    """The server says nothing at all."""

    def __init__(self) -> None:
        super().__init__("the database says nothing")


class Watch:
    """What this process knows of the server's silence; shared by its threads."""

    def __init__(self) -> None:
        self.silent = False
        self._heard_at = time.monotonic()
        self._asking = threading.RLock()
        self._own = threading.local()

    @contextlib.contextmanager
    def patience(self, seconds: float) -> Iterator[None]:
        """Let this thread wait no longer than so for a word of the server, whatever that says of the server."""
        self._own.patience = seconds
        try:
            yield
        finally:
            del self._own.patience

    @contextlib.contextmanager
    def asking(self, *, settles: bool = True) -> Iterator[None]:
        """Ask a server, by one thread at a time if it was silent; an answer `settles` that it is not."""
        if not self.silent:
            yield
        elif not self._asking.acquire(blocking=False):
            raise DatabaseSilent
        else:
            try:
                yield
                if settles:
                    self.heard()
            finally:
                self._asking.release()

    def heard(self) -> None:
        """Note that the server spoke."""
        self.silent, self._heard_at = False, time.monotonic()

    def listen(self, gen: PQGen[Value], *, longest: float, is_there: Callable[[], bool] | None) -> PQGen[Value]:
        """Pass on what the connection says; end the wait where it, or the whole server, says nothing.

        Parameters
        ----------
        gen : generator
            What psycopg waits for.
        longest : float
            Seconds of silence after which the server is silent, whatever else it does.
        is_there : callable, optional
            Says whether the server takes a new connection; without it the longest silence alone counts.

        Raises
        ------
        DatabaseSilent
            The connection must not be used any more.
        """
        own: float | None = getattr(self._own, "patience", None)
        asks = self.silent
        if asks:
            longest = min(longest, ASK_SECONDS)
        last = asked = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                now = time.monotonic()
                if ready & Ready.R:
                    last = asked = now
                    self.heard()
                elif (self.silent and not asks) or (own is not None and now - last > own):
                    raise DatabaseSilent
                elif now - last > longest:
                    self.silent = True
                    raise DatabaseSilent
                elif is_there and not asks and now - max(asked, self._heard_at) > QUIET_SECONDS:
                    self._look(is_there)
                    asked = time.monotonic()
                wanted = gen.send(ready)
        except StopIteration as done:
            value: Value = done.value
            return value

    def _look(self, is_there: Callable[[], bool]) -> None:
        """Try the server from outside; while one thread does, the others need not."""
        if not self._asking.acquire(blocking=False):
            return
        try:
            if is_there():
                self._heard_at = time.monotonic()
            else:
                self.silent = True
                raise DatabaseSilent
        finally:
            self._asking.release()


WATCH = Watch()


def takes_connections(parameters: dict[str, Any]) -> bool:
    """Say whether a server answers who knocks; a refusal is an answer."""
    try:
        psycopg.connect(**parameters | {"connect_timeout": ASK_SECONDS}).close()
    except psycopg.errors.ConnectionTimeout:
        return False
    except psycopg.Error:
        return True
    return True
