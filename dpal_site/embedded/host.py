"""Processes, ports, locks and private files of the operating system."""

import contextlib
import fcntl
import functools
import os
import pwd
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


class EmbeddedError(Exception):
    """Base of this package's errors."""


class ServerNotStarted(EmbeddedError):
    """A server could not be started or stopped; the message carries the end of its log."""


class ProcessDied(EmbeddedError):
    """A process of the site ended by itself; the message carries the end of its log."""


class UnsupportedUrl(EmbeddedError, ValueError):
    """A database URL this site cannot use; the message never repeats the URL, which may hold a password."""


LOOPBACK = "127.0.0.1"
# Linux gives connections ports from 32768 on, other systems from 49152.
QUIET_PORTS = range(20_000, 32_768)
PORTS_TRIED = 64
PROC = Path("/proc")  # absent on macOS, where `ps` is asked


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    command: str


def running_process(pid: int) -> Process | None:
    """Return the process, or None when it has ended; a zombie that nobody has reaped has ended."""
    if (PROC / "self" / "stat").exists():
        folder = PROC / str(pid)
        try:
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
    else:
        listed = subprocess.run(
            ["ps", "-ww", "-o", "stat=", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        state, _, command = listed.stdout.strip().partition(" ")
    return Process(pid, command.strip()) if state and state[0] not in "ZX" else None


def free_memory_bytes() -> int:
    """Return how much memory programs may still take; of a system that does not say, all it has."""
    with contextlib.suppress(FileNotFoundError):
        for line in (PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def wait_until(condition: Callable[[], bool], timeout_seconds: float, poll_seconds: float = 0.02) -> bool:
    """Poll until `condition` holds; False when it did not within the time."""
    end = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(poll_seconds)
    return True


def free_port() -> int:
    drawn = (QUIET_PORTS[secrets.randbelow(len(QUIET_PORTS))] for _ in range(PORTS_TRIED))
    found = next(filter(port_is_free, drawn), None)
    if found is not None:
        return found
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        if probe.connect_ex((LOOPBACK, port)) == 0:
            return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def port_for_start(wanted: int | None, remembered: int | None, *, patience_seconds: float = 0.0) -> int:
    port = wanted or remembered
    if port is None:
        return free_port()
    if port_is_free(port) or wait_until(lambda: port_is_free(port), patience_seconds):
        return port
    if wanted:
        raise ServerNotStarted(f"port {wanted} is in use by another program")
    return free_port()


def free_port_from(first: int) -> int:
    return next(port for port in range(first, 65536) if port_is_free(port))


@contextlib.contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold the lock file; the kernel frees it however the holder ends."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_private_file(path: Path, text: str) -> None:
    """Replace the file in one step; readable by its owner alone (mkstemp's mode), never seen half written."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(path)


def read_or_create_secret(path: Path) -> str:
    """Return the secret in the file, made at first use; any number of processes asking at once see the same."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with exclusive_lock(path.with_name(path.name + ".lock")):
        if not path.exists():
            write_private_file(path, secrets.token_urlsafe(48))
    return path.read_text()


def read_port(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def tail(path: Path, start: int = 0, lines: int = 15) -> str:
    with path.open("rb") as file:
        file.seek(start)
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


LAUNCH = (sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py")))
RootMode = Literal["auto", "namespace", "setuid"]


@dataclass(frozen=True, slots=True)
class Identity:
    mode: Literal["self", "namespace", "setuid"]
    prefix: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None

    def command(self, *words: str | Path) -> list[str]:
        return [*self.prefix, *map(str, words)]

    def reaches(self, folder: Path) -> bool:
        return subprocess.run(self.command("test", "-x", folder), check=False).returncode == 0

    def own(self, path: Path) -> None:
        """Give a tree to this identity, unless it has it: another mode may have been in use before."""
        if self.uid is None or self.gid is None or path.stat().st_uid == self.uid:
            return
        for inner in path.rglob("*"):
            os.chown(inner, self.uid, self.gid, follow_symlinks=False)
        os.chown(path, self.uid, self.gid)


@functools.cache
def current_identity(root_mode: RootMode = "auto") -> Identity:
    """Return ourselves; as root a user namespace, or where those are forbidden (many containers) another user."""
    if os.geteuid() != 0:
        return Identity("self")
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = known.get("postgres") or known["nobody"]
    numbers = f"{user.pw_uid}:{user.pw_gid}"
    namespace = Identity("namespace", (*LAUNCH, "--map", numbers, "--"), 0, 0)
    if root_mode == "namespace" or (root_mode == "auto" and _works(namespace, user.pw_uid)):
        return namespace
    return Identity("setuid", (*LAUNCH, "--become", numbers, "--"), user.pw_uid, user.pw_gid)


def _works(identity: Identity, uid: int) -> bool:
    shown = subprocess.run(identity.command("id", "-u"), capture_output=True, text=True, check=False)
    return shown.stdout.strip() == str(uid)
