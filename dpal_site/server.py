"""`python -m dpal_site.server`: serve the site with waitress, in a few processes that share one socket."""

import argparse
import contextlib
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import weakref
from types import FrameType, ModuleType
from typing import Any, ClassVar, NoReturn

from prometheus_client import multiprocess
from waitress.adjustments import Adjustments  # type: ignore[import-untyped]
from waitress.channel import HTTPChannel  # type: ignore[import-untyped]
from waitress.parser import HTTPRequestParser, ParsingError  # type: ignore[import-untyped]
from waitress.server import TcpWSGIServer  # type: ignore[import-untyped]
from waitress.utilities import RequestEntityTooLarge  # type: ignore[import-untyped]

from dpal_site.environment import AT_LEAST_ONE, env

# Below the 1024 files that most systems let a process open.
MOST_CONNECTIONS = 512
BACKLOG = 1024
IDLE_SECONDS = 30.0
# A request has so long, and a second more for every 4 KiB that have come: a quarter of the slowest mobile network.
REQUEST_SECONDS = 15.0
SLOWEST_BYTES_PER_SECOND = 4096
LINGER_SECONDS = 2.0
MOST_HEAD_BYTES = 64 * 1024
# Requests in progress are finished within this time when the server is asked to stop.
STOP_SECONDS = 8.0
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}
SIGNALS = {*STOP_SIGNALS, signal.SIGHUP, signal.SIGCHLD}
SERVER = "waitress"
TWO_LENGTHS = "two lengths"


class Request(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """A request on its way, which knows when it began; a body without room is left to the site to refuse."""

    completed: bool
    large: ClassVar[weakref.WeakSet["Request"]] = weakref.WeakSet()

    def __init__(self, adj: Adjustments) -> None:
        super().__init__(adj)
        self.began = time.time()

    def parse_header(self, header_plus: bytes) -> None:
        """Refuse two lengths: what stands before or behind the site may believe the other one."""
        super().parse_header(header_plus)
        if "TRANSFER_ENCODING" in self.headers or (self.chunked and "CONTENT_LENGTH" in self.headers):
            raise ParsingError(TWO_LENGTHS)

    def received(self, data: bytes) -> int:
        """Take what has come; hand over a request at its head when its body cannot be kept."""
        was_in_head = not self.headers_finished
        taken: int = super().received(data)
        if self.completed:
            Request.large.discard(self)
        elif self.chunked and bodies().is_large(self.body_bytes_received):
            self.error, self.completed = RequestEntityTooLarge("say its length"), True
        elif was_in_head and self.headers_finished and bodies().is_large(self.content_length):
            if bodies().has_room(self.content_length, arriving=sum(each.content_length for each in Request.large)):
                Request.large.add(self)
                return taken
            self.headers |= {"CONNECTION": "close", bodies().REFUSED: "1"}
            self.completed, self.expect_continue = True, False
            # What follows is the body: it must not be read as another request.
            return len(data)
        return taken

    def is_late(self, now: float) -> bool:
        return now - self.began > REQUEST_SECONDS + float(self.body_bytes_received) / SLOWEST_BYTES_PER_SECOND


class Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection, which is closed in two steps: else an answer may be lost while the other end still sends."""

    parser_class = Request
    lingers_until = 0.0

    def received(self, data: bytes) -> bool:
        return not self.lingers_until and bool(super().received(data))

    def handle_close(self) -> None:
        """Close our half; at the second call, or later, the whole."""
        if self.lingers_until or not self.connected:
            super().handle_close()
            return
        self.lingers_until, self.will_close = time.time() + LINGER_SECONDS, False
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def drop(self) -> None:
        self.lingers_until = self.lingers_until or time.time()
        self.will_close = True

    def is_late(self, now: float) -> bool:
        if self.lingers_until:
            return now > self.lingers_until
        return now - float(self.last_activity) > IDLE_SECONDS or (
            self.request is not None and self.request.is_late(now)
        )


class Server(TcpWSGIServer):  # type: ignore[misc]  # waitress has no types
    """waitress, which closes what is slow or has waited longest, and finishes what it has begun."""

    channel_class = Channel
    accepting: bool
    stops_at = 0.0

    def maintenance(self, now: float) -> None:
        """Close connections that are late; near the limit, those that have been silent longest."""
        waiting = [each for each in self.active_channels.values() if not each.requests]
        late = [each for each in waiting if each.is_late(now)]
        if len(self.active_channels) > MOST_CONNECTIONS * 3 // 4:
            late += sorted(waiting, key=lambda each: float(each.last_activity))[: MOST_CONNECTIONS // 4]
        for each in late:
            each.drop()

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Take no more connections; a handler of signals."""
        self.stops_at = self.stops_at or time.monotonic() + STOP_SECONDS
        self.pull_trigger()

    def run(self) -> None:
        """Serve until asked to stop, and as long as it takes to answer what is there."""
        while not self.stops_at or (self._is_busy() and time.monotonic() < self.stops_at):
            if self.stops_at and self.accepting:
                self.accepting = False
                self.del_channel()
                self.socket.close()
            self.asyncore.loop(timeout=1, use_poll=True, map=self._map, count=1)

    def _is_busy(self) -> bool:
        return any(each.requests or each.request or each.total_outbufs_len for each in self.active_channels.values())


def bodies() -> ModuleType:
    """Return what the site says of bodies; to be called when its applications are loaded."""
    from dpal_site import bodies as rules  # noqa: PLC0415 - loads models

    return rules


class WithoutRequest(logging.Filter):
    """Keep what the server says of a request free of its address: links of invitations are secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = record.getMessage().partition(" serving ")[0], ()
        return True


def serve(listener: socket.socket, application: Any, *, threads: int) -> None:
    logging.getLogger(SERVER).addFilter(WithoutRequest())
    logging.getLogger(f"{SERVER}.queue").setLevel(logging.ERROR)
    adjustments = Adjustments(
        threads=threads,
        connection_limit=MOST_CONNECTIONS,
        backlog=BACKLOG,
        asyncore_use_poll=True,
        cleanup_interval=1,
        max_request_header_size=MOST_HEAD_BYTES,
        # Bodies that say their length are for `bodies`; those that say none are of forms.
        max_request_body_size=2**63 - 1,
        # An answer that is read slowly waits in a file, not in a thread.
        outbuf_high_watermark=2**63 - 1,
        # Proxies are believed by the site's own settings.
        clear_untrusted_proxy_headers=False,
        ident=None,
        sockets=[listener],
    )
    where = (listener.family, listener.type, listener.proto, listener.getsockname())
    server = Server(application, _sock=listener, adj=adjustments, bind_socket=False, sockinfo=where)
    for number in STOP_SIGNALS:
        signal.signal(number, server.stop)
    server.run()


class Master:
    def __init__(self, listener: socket.socket, application: Any, *, workers: int, threads: int) -> None:
        self._listener, self._application, self._threads, self._wanted = listener, application, threads, workers
        self._workers: set[int] = set()
        # Closed when this process ends, however it ends; its workers see that.
        self._seen_by_workers, self._life = os.pipe()

    def run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        for _ in range(self._wanted):
            self._start()
        while (number := signal.sigwait(SIGNALS)) not in STOP_SIGNALS:
            if number == signal.SIGHUP:
                self._reload()
            self._replace_ended()
        self._stop()

    def _start(self) -> None:
        if pid := os.fork():
            self._workers.add(pid)
            return
        try:
            for each in STOP_SIGNALS:
                signal.signal(each, lambda *_: os._exit(0))
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            # Before there are threads: what they start would inherit it.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            os.close(self._life)
            threading.Thread(target=self._end_with_master, daemon=True).start()
            from annotation.work.services import files  # noqa: PLC0415 - loads models

            files.begin()
            serve(self._listener, self._application, threads=self._threads)
        except BaseException:
            logging.getLogger(__name__).exception("A process of the web server ended.")
            os._exit(1)
        # Threads that still wait for a database must not hold it up.
        os._exit(0)

    def _end_with_master(self) -> None:
        os.read(self._seen_by_workers, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def _replace_ended(self) -> None:
        for pid in self._ended():
            multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]
            # A fault that the next start does not mend must not keep the processor busy.
            time.sleep(0.2)
            self._start()

    def _ended(self) -> list[int]:
        ended = []
        while self._workers:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if pid in self._workers:
                self._workers.remove(pid)
                ended.append(pid)
        return ended

    def _stop(self) -> None:
        for pid in self._workers:
            os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + STOP_SECONDS + 2
        while self._workers and time.monotonic() < until:
            self._ended()
            time.sleep(0.05)
        for pid in self._workers:
            os.kill(pid, signal.SIGKILL)

    def _reload(self) -> NoReturn:
        """Begin again with the code and the environment of now; connections wait, and the old processes finish."""
        os.set_inheritable(self._listener.fileno(), True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        options = ["--fd", str(self._listener.fileno()), "--workers", str(self._wanted)]
        os.execv(sys.executable, [sys.executable, "-m", "dpal_site.server", *options])  # noqa: S606 - ourselves


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dpal_site.server", description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1:8000", metavar="HOST:PORT")
    parser.add_argument("--workers", type=int, default=env.int("WEB_CONCURRENCY", 2, validate=AT_LEAST_ONE))
    parser.add_argument("--fd", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fd is None:
        host, _, port = options.bind.rpartition(":")
        host = host.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, int(port)), family=family, backlog=BACKLOG)
    else:
        listener = socket.socket(fileno=options.fd)
    listener.setblocking(False)
    # Where the processes count together; they go on counting there when the server is reloaded.
    counts = os.environ["PROMETHEUS_MULTIPROC_DIR"] if options.fd else tempfile.mkdtemp(prefix="dpal-metrics-")
    os.environ |= {"DPAL_SERVES_PAGES": "1", "PROMETHEUS_MULTIPROC_DIR": counts}
    try:
        # Every view is imported once, before there are processes: half the time to start, and memory that they share.
        from dpal_site.wsgi import application  # noqa: PLC0415 - reads the environment

        Master(
            listener, application, workers=options.workers, threads=env.int("WEB_THREADS", 4, validate=AT_LEAST_ONE)
        ).run()
    finally:
        shutil.rmtree(counts, ignore_errors=True)


if __name__ == "__main__":
    main()
