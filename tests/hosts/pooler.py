"""A private PgBouncer in transaction mode before the tests' own Postgres, ended by its process id."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from dpal_site.embedded import host
from dpal_site.embedded.database_address import parse_database_url
from dpal_site.embedded.host import current_identity
from tests.faults.storm.site import quiet_port

INSTALL = "apt-get install pgbouncer"
PATIENCE_SECONDS = 60
WEB_SECONDS = 2


@dataclass(frozen=True, slots=True)
class PoolerTls:
    authority: Path
    certificate: Path
    key: Path

    @property
    def settings(self) -> str:
        return (
            f"server_tls_sslmode = verify-full\nserver_tls_ca_file = {self.authority}\n"
            f"client_tls_sslmode = require\nclient_tls_key_file = {self.key}\n"
            f"client_tls_cert_file = {self.certificate}\n"
        )


class PrivatePooler:
    """Two server sessions for whoever comes; the pages' address gives each of theirs a time limit."""

    def __init__(
        self, folder: Path, database_url: str, *, sessions: int = 2, label_url: str = "", tls: PoolerTls | None = None
    ) -> None:
        self.folder, self.port = folder, quiet_port(set())
        self._behind = parse_database_url(database_url)
        self._label = parse_database_url(label_url) if label_url else None
        self._tls = tls
        self._sessions = sessions
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self._url("pooled")

    @property
    def web_url(self) -> str:
        return self._url("pooled_web")

    @property
    def label_url(self) -> str:
        assert self._label is not None
        return self._url("pooled_label", self._label)

    def start(self) -> None:
        self.open()
        self.wait()

    def open(self) -> None:
        program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
        if program is None:
            pytest.skip(f"tests of the pooler skipped: no pgbouncer found; {INSTALL}")
        self.folder.mkdir(mode=0o700)
        behind = self._behind
        server = f"host={behind['HOST']} port={behind['PORT']} dbname={behind['NAME']}"
        people = [behind, *([self._label] if self._label else [])]
        (self.folder / "users").write_text("".join(f'"{one["USER"]}" "{one["PASSWORD"]}"\n' for one in people))
        (self.folder / "pgbouncer.ini").write_text(
            f"[databases]\npooled = {server}\n"
            f"pooled_web = {server} connect_query='SET statement_timeout = {1000 * WEB_SECONDS}'\n"
            f"pooled_label = {server}\n"
            f"[pgbouncer]\nlisten_addr = {host.LOOPBACK}\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = scram-sha-256\nauth_file = {self.folder}/users\n"
            f"pool_mode = transaction\ndefault_pool_size = {self._sessions}\nmax_client_conn = 200\n"
            + (self._tls.settings if self._tls else "")
        )
        identity = current_identity()
        # It refuses to be root, and an ordinary user has to find the way to its folder.
        for above in self.folder.parents[:3]:
            above.chmod(above.stat().st_mode | 0o011)
        identity.own(self.folder)
        with (self.folder.parent / "pooler.log").open("ab") as log:
            self._process = subprocess.Popen(
                identity.command(program, self.folder / "pgbouncer.ini"), stdout=log, stderr=log
            )

    def wait(self) -> None:
        assert host.wait_until(self._answers, PATIENCE_SECONDS), host.tail(self.folder.parent / "pooler.log")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE_SECONDS)

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.url, connect_timeout=5) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    def _url(self, name: str, who: dict[str, str] | None = None) -> str:
        who = who or self._behind
        place = f"{host.LOOPBACK}:{self.port}/{name}?sslmode=disable"
        if self._tls:
            place = f"localhost:{self.port}/{name}?sslmode=verify-full&sslrootcert={quote(str(self._tls.authority))}"
        return f"postgresql://{who['USER']}:{who['PASSWORD']}@{place}"
