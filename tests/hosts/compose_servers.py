"""The compose file's own database and broker: its commands, rules and health checks, run by Debian's programs.

Where a container would mount a file, the command is given the file's place; nothing else of it is changed.
"""

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest
import yaml

from dpal_site.embedded import host
from dpal_site.embedded.host import current_identity
from dpal_site.embedded.servers import REPOSITORY
from tests.faults.storm.site import quiet_port

INSTALL = "apt-get install --no-install-recommends postgresql redis-server"
PATIENCE_SECONDS = 120
SERVICES = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())["services"]
# What the image's entry point does, as far as it matters here: make a cluster once, then become its server.
ENTRYPOINT = """#!/bin/sh
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --username "$POSTGRES_USER" --pwfile "$POSTGRES_PASSWORD_FILE" --encoding UTF8 $POSTGRES_INITDB_ARGS
fi
shift
exec postgres "$@" -c unix_socket_directories= -c fsync=off
"""


class ComposeServer:
    """One of the two: its command under this folder, on a free port."""

    def __init__(self, name: str, folder: Path, programs: str, places: dict[str, str], port: int) -> None:
        self.name, self.port, self._folder, self._places = name, port, folder, places
        self._service = SERVICES[name]
        self._environment = {"PATH": f"{folder / 'bin'}:{programs}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
        given = self._service.get("environment", {})
        self._environment |= {key: self._here(value) for key, value in given.items()}
        self._environment |= {"PGPORT": str(port), "PGDATA": str(folder / "database"), "HOME": str(folder)}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self._folder / f"{self.name}.log"

    def start(self) -> None:
        command = [self._here(word) for word in self._service["command"]]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                current_identity().command(*command),
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        assert host.wait_until(self.is_healthy, PATIENCE_SECONDS, 0.2), host.tail(self.log)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(2)
            self._process.wait(PATIENCE_SECONDS)
            self._process = None

    def is_healthy(self) -> bool:
        kind, *words = self._service["healthcheck"]["test"]
        command = ["sh", "-c", *words] if kind == "CMD-SHELL" else words
        done = subprocess.run(
            [self._here(word) for word in command], env=self._environment, capture_output=True, check=False
        )
        return done.returncode == 0

    def _here(self, text: str) -> str:
        for there, place in self._places.items():
            text = text.replace(there, place)
        return text


class ComposeServers:
    def __init__(self, folder: Path) -> None:
        self.folder, self.secrets = folder, folder / "secrets"
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
        if not found or not shutil.which("redis-server"):
            pytest.skip(f"tests of the compose file's servers skipped; {INSTALL}")
        folder.mkdir(mode=0o755)
        make_secrets(self.secrets)
        for name in ("bin", "socket", "data", "database"):
            (folder / name).mkdir(mode=0o700)
        entry = folder / "bin" / "docker-entrypoint.sh"
        entry.write_text(ENTRYPOINT)
        entry.chmod(0o755)
        # Debian has the older name of the same program.
        for ours, theirs in (("valkey-server", "redis-server"), ("valkey-cli", "redis-cli")):
            (folder / "bin" / ours).symlink_to(shutil.which(theirs) or theirs)
        shutil.copy(REPOSITORY / "deploy" / "pg_hba.conf", folder / "pg_hba.conf")
        taken: set[int] = set()
        ports = {name: quiet_port(taken) for name in ("postgres", "valkey")}
        places = {
            "$$": "$",
            "/run/secrets": str(self.secrets),
            "/var/run/postgresql": str(folder / "socket"),
            "/etc/postgresql/pg_hba.conf": str(folder / "pg_hba.conf"),
            "--dir /data": f"--dir {folder / 'data'}",
            "6379": str(ports["valkey"]),
            "VALKEYCLI_AUTH": "REDISCLI_AUTH",
            "-h localhost": f"-h localhost -p {ports['valkey']}",
        }
        self.postgres, self.valkey = (
            ComposeServer(name, folder, str(found[-1].parent), places, port) for name, port in ports.items()
        )
        # As in the images: an ordinary user, who finds the way to what is mounted.
        for above in (self.secrets, *self.secrets.parents[:4]):
            above.chmod(above.stat().st_mode | 0o011)
        for name in ("bin", "socket", "data", "database", "pg_hba.conf"):
            current_identity().own(folder / name)

    def secret(self, name: str) -> str:
        return (self.secrets / name).read_text()

    def start(self) -> None:
        """Start both and make the database."""
        self.postgres.start()
        self.valkey.start()
        with psycopg.connect(self.database_url(database="postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE dpal")

    def stop(self) -> None:
        for server in (self.valkey, self.postgres):
            server.stop()

    def database_url(self, secret: str = "database_owner_url", database: str = "dpal") -> str:
        made = self.secret(secret).replace("/run/secrets", str(self.secrets))
        return made.replace("@postgres:5432/dpal?", f"@localhost:{self.postgres.port}/{database}?")

    @property
    def broker_url(self) -> str:
        return self.secret("broker_url").replace("@valkey:6379", f"@localhost:{self.valkey.port}")


def make_secrets(folder: Path) -> None:
    given = {"SECRETS": str(folder), "PATH": os.environ["PATH"]}
    subprocess.run(["sh", REPOSITORY / "deploy" / "secrets.sh"], env=given, check=True, capture_output=True)
