"""Run a site's processes: the web server, the worker and the clock, started and stopped as one."""

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from dpal_site.embedded import host, servers
from dpal_site.embedded.host import LAUNCH, EmbeddedError, ProcessDied

# The web server alone: a worker shows itself only once the clock has sent it something.
READINESS_PATH = "/readyz?check=database&check=disk"
FIRST_PORT = 8000
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What two workers hold before they do anything, and room for what they do.
TWO_WORKERS_BYTES = 2**30
HELPER_TASKS = 2
OUTSIDE_THREADS = 8
# Who ends sooner than this has a fault that the next start may not mend.
STEADY_SECONDS = 60
LONGEST_PAUSE_SECONDS = 60
CELERY = (sys.executable, "-m", "celery", "-A", "dpal_site.celery:app")


@dataclass(slots=True)
class _Child:
    name: str
    command: list[str]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes]
    log_start: int
    started: float
    # When it is started again; None while it runs, or before anybody saw that it does not.
    due: float | None = None


class Supervisor:
    """The processes of one site; use it as a context manager, on the main thread, so that none outlives it."""

    def __init__(
        self,
        log_dir: Path,
        echo: bool = False,
        *,
        environment: Mapping[str, str] | None = None,
        grace_seconds: float = 10.0,
    ) -> None:
        self.log_dir = Path(log_dir)
        self.echo = echo
        self.grace_seconds = grace_seconds
        self.url = ""
        self._urls: list[str] = []
        self._environment = {
            **os.environ,
            "DPAL_VAR": str(servers.var_dir()),
            "PYTHONUNBUFFERED": "1",
            **(environment or {}),
        }
        # Nothing that serves anybody may know who owns the tables.
        for name in ("DATABASE_OWNER_URL", "DATABASE_OWNER_URL_FILE"):
            self._environment.pop(name, None)
        self._children: dict[str, _Child] = {}
        self._early_ends: dict[str, int] = {}
        self._servers_due = 0.0
        self._old_handlers: dict[int, Any] = {}
        self._held_signal: int | None = None
        self._holding_signals = False
        self._finished = threading.Event()

    def __enter__(self) -> Self:
        for number in STOP_SIGNALS:
            self._old_handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A second Ctrl-C must not leave half of them running; the grace period bounds the wait.
        _ignore_signals()
        try:
            self.stop()
        finally:
            for old, handler in self._old_handlers.items():
                signal.signal(old, handler)

    def start(self, name: str, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        own = {**self._environment, **(environment or {})}
        if name in self._children:
            raise EmbeddedError(f"{name} already runs")
        self.log_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = self.log_path(name)
        log.touch(mode=0o600)
        with log.open("ab") as output, self._signals_held():
            process = subprocess.Popen(
                [*LAUNCH, "--die-with", str(os.getpid()), "--", *command],
                cwd=servers.REPOSITORY,
                env={key: value for key, value in own.items() if value or key not in (environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,  # the terminal's Ctrl-C reaches us alone, and we stop the children in order
            )
            self._children[name] = _Child(name, command, environment or {}, process, output.tell(), time.monotonic())
        if self.echo:
            threading.Thread(target=self._echo, args=(self._children[name],), daemon=True).start()

    def start_web(self, port: int | None = None, workers: int = 2) -> str:
        port = self._port(port)
        self._start_server("web", port, workers, {})
        self.url = f"http://{host.LOOPBACK}:{port}"
        return self.url

    def start_web_and_label(self, port: int | None = None, workers: int = 2) -> str:
        port = self._port(port)
        label_port = host.free_port_from(port + 1)
        web_url, label_url = (f"http://{host.LOOPBACK}:{each}" for each in (port, label_port))
        self._start_server("web", port, workers, {"SITE_PART": "web", "LABEL_PROCESS_URL": label_url})
        # The wider role's address stays out of the process that answers annotators; who asks the other one says.
        label = {"SITE_PART": "label", "WEB_URL": web_url, "DATABASE_URL": "", "DATABASE_URL_FILE": ""}
        label |= {"TRUSTED_PROXY_COUNT": "1"}
        self._start_server("label", label_port, workers, label)
        self.url = web_url
        return self.url

    def _port(self, port: int | None) -> int:
        if port is None:
            return host.free_port_from(FIRST_PORT)
        if not host.port_is_free(port):
            raise EmbeddedError(f"port {port} is in use by another program")
        return port

    def _start_server(self, name: str, port: int, workers: int, environment: Mapping[str, str]) -> None:
        options = ["--bind", f"{host.LOOPBACK}:{port}", "--workers", str(workers)]
        self.start(name, [sys.executable, "-m", "dpal_site.server", *options], environment)
        self._urls.append(f"http://{host.LOOPBACK}:{port}")

    def start_workers(self, concurrency: int = 2) -> None:
        if host.free_memory_bytes() < TWO_WORKERS_BYTES:
            self.start_worker(concurrency)
            return
        self.start_worker(concurrency, queues="heavy")
        self.start_worker(HELPER_TASKS, queues="light", name="helper")
        # Its tasks wait for other servers, each within its own deadline.
        self.start_worker(OUTSIDE_THREADS, queues="outside", name="outside", pool="threads")

    def start_worker(
        self, concurrency: int = 2, queues: str | None = None, name: str = "worker", pool: str = "prefork"
    ) -> None:
        options = ["--concurrency", str(concurrency), "--hostname", f"{name}{os.getpid()}@%h", "--loglevel", "INFO"]
        options += ["--pool", pool, "--without-gossip", "--without-mingle", *(["--queues", queues] if queues else [])]
        # Workers write letters, whose addresses begin with it.
        known = self.url and "SITE_URL" not in self._environment
        self.start(name, [*CELERY, "worker", *options], {"SITE_URL": self.url} if known else None)

    def start_beat(self) -> None:
        self.start("beat", [*CELERY, "beat", "--pidfile", "", "--loglevel", "INFO"])

    def wait_until_ready(self, timeout_seconds: float = 240) -> None:
        end = time.monotonic() + timeout_seconds
        while True:
            self.check_running()
            silent = [url for url in self._urls if not self._answers(url)]
            if not silent:
                return
            if time.monotonic() > end:
                raise EmbeddedError(
                    f"no answer from {silent[0]} in {timeout_seconds:.0f} s; {self.log_path('web')} ends:\n"
                    + host.tail(self.log_path("web"))
                )
            time.sleep(0.05)

    def wait(self) -> None:
        """Return never: a signal unwinds the caller, and a process that ends by itself raises."""
        while True:
            self.check_running()
            time.sleep(0.5)

    def keep_running(self, say: Callable[[str], None]) -> None:
        """Return never: what ends by itself is started again, for the others go on meanwhile."""
        while True:
            self.revive(say)
            time.sleep(0.5)

    def revive(self, say: Callable[[str], None]) -> None:
        """Start again what has ended by itself; what keeps ending soon after its start waits longer each time."""
        self._revive_servers(say)
        for name in self.ended():
            child, now = self._children[name], time.monotonic()
            if child.due is None:
                soon = now - child.started < STEADY_SECONDS
                self._early_ends[name] = early = self._early_ends.get(name, 0) + 1 if soon else 0
                child.due = now + (wait := min(2**early - 1, LONGEST_PAUSE_SECONDS))
                when = f"in {wait} s" if wait else "now"
                say(f"The {name} process ended with code {child.process.returncode}; it is started again {when}.")
                say(f"{self.log_path(name)} ends:\n{host.tail(self.log_path(name), child.log_start)}")
            if now >= child.due:
                self.restart(name)

    def _revive_servers(self, say: Callable[[str], None]) -> None:
        """Start database and broker first: the processes wait for them, and need no restart unless one has moved."""
        now = time.monotonic()
        if now < self._servers_due:
            return
        try:
            moved = servers.revive(say)
        except (EmbeddedError, OSError) as error:  # a full disk, too
            self._early_ends["servers"] = early = self._early_ends.get("servers", 0) + 1
            self._servers_due = now + (wait := min(2**early - 1, LONGEST_PAUSE_SECONDS))
            say(f"{error}\nThe next try is in {wait} s.")
            return
        self._early_ends.pop("servers", None)
        if moved:
            say(f"Another program took the old port; {', '.join(self._children)} are started again.")
            for name in list(self._children):
                self.restart(name)

    def check_running(self) -> None:
        for child in self._children.values():
            if (code := self._code(child)) is not None:
                said = host.tail(self.log_path(child.name), child.log_start)
                raise ProcessDied(f"{child.name} ended with code {code}; {self.log_path(child.name)} ends:\n{said}")

    def ended(self) -> list[str]:
        return [child.name for child in self._children.values() if self._code(child) is not None]

    def _code(self, child: _Child) -> int | None:
        # A signal that raised inside `poll` would leave its lock held, and the last wait would never end.
        with self._signals_held():
            return child.process.poll()

    def restart(self, name: str) -> None:
        child = self._children[name]
        with self._signals_held():
            self._stop_child(child)
        self.start(name, child.command, child.environment)

    def pid(self, name: str) -> int:
        return self._children[name].process.pid

    def log_path(self, name: str) -> Path:
        return self.log_dir / f"{name}.log"

    def stop(self) -> None:
        children = list(reversed(self._children.values()))
        try:
            for child in children:
                self._ask(child, signal.SIGTERM)
            for child in children:
                self._see_out(child)
        finally:
            self._finished.set()
            servers.stop_started()

    def _stop_child(self, child: _Child) -> None:
        self._ask(child, signal.SIGTERM)
        self._see_out(child)

    @staticmethod
    def _ask(child: _Child, request: signal.Signals) -> None:
        if child.process.poll() is None:
            child.process.send_signal(request)

    def _see_out(self, child: _Child) -> None:
        """Wait for whom was asked politely, ask urgently, then end the whole group: no grandchild stays either."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.process.wait(self.grace_seconds)
        self._ask(child, signal.SIGQUIT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.process.wait(self.grace_seconds)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: nothing left but zombies
            os.killpg(child.process.pid, signal.SIGKILL)
        child.process.wait()
        del self._children[child.name]

    def _answers(self, url: str) -> bool:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
        try:
            connection.request("GET", READINESS_PATH)
            return connection.getresponse().status < 500
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _echo(self, child: _Child) -> None:
        with self.log_path(child.name).open(errors="replace") as log:
            log.seek(child.log_start)
            pending = ""
            while not self._finished.is_set() and child.process.returncode is None:
                *lines, pending = (pending + log.read()).split("\n")
                for line in lines:
                    print(f"{child.name:>6} | {line}", flush=True)
                self._finished.wait(0.2)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._holding_signals:
            self._held_signal = number
            return
        # Here and not in `__exit__` alone: a second signal on the way there would leave the children running.
        _ignore_signals()
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    @contextlib.contextmanager
    def _signals_held(self) -> Iterator[None]:
        """Answer a signal only after the block, where raising inside it would lose a child or keep a lock."""
        self._holding_signals = True
        try:
            yield
        finally:
            self._holding_signals = False
            if (number := self._held_signal) is not None:
                self._held_signal = None
                self._on_signal(number, None)


def _ignore_signals() -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
