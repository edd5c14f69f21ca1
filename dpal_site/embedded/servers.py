"""The servers a site falls back on: where no URL is set, an embedded Postgres and an embedded Valkey under `var/`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpal_site.embedded import host
from dpal_site.embedded.database_address import parse_database_url
from dpal_site.embedded.postgres import EmbeddedPostgres
from dpal_site.embedded.valkey import EmbeddedValkey

REPOSITORY = Path(__file__).resolve().parents[2]
SITE_ROLE, LABEL_ROLE = "dpal_site", "dpal_label"
# With DPAL_NO_SERVERS=1 nothing is started: settings load, and the first connection fails at once, saying why.
NOWHERE = "/DPAL_NO_SERVERS is set and no server runs"
# Of libpq: what nobody confirms within half a minute is lost.
NETWORK = {"connect_timeout": 10, "tcp_user_timeout": 30_000, "keepalives_idle": 30, "keepalives_interval": 10}
_started_here: list[EmbeddedPostgres | EmbeddedValkey] = []
# By their folder: those that this process, or what it starts, relies on.
_used: dict[Path, EmbeddedPostgres | EmbeddedValkey] = {}


def var_dir() -> Path:
    """Return the folder of everything the site writes: DPAL_VAR, else `var/` beside the code."""
    return Path(os.environ.get("DPAL_VAR") or REPOSITORY / "var").resolve()


def postgres() -> EmbeddedPostgres:
    return EmbeddedPostgres(var_dir() / "postgres")


def valkey() -> EmbeddedValkey:
    return EmbeddedValkey(var_dir() / "valkey")


def owner_database_url() -> str:
    server = postgres()
    return server.url() if _available(server) else f"postgresql:///dpal?host={NOWHERE}"


def database_url() -> str:
    """Return the URL of the embedded database for the role of web servers and workers, which migrations make."""
    return _url_for(SITE_ROLE, "site-database-password")


def label_database_url() -> str:
    return _url_for(LABEL_ROLE, "label-database-password")


def _url_for(role: str, secret: str) -> str:
    owned = owner_database_url()
    _, at, address = owned.rpartition("@")
    return f"postgresql://{role}:{local_secret(secret)}@{address}" if at else owned


def broker_url() -> str:
    server = valkey()
    return server.url() if _available(server) else f"redis+socket://{NOWHERE.replace(' ', '%20')}"


def database_settings(url: str | None) -> dict[str, Any]:
    database = parse_database_url(url or database_url())
    database["OPTIONS"] = NETWORK | database["OPTIONS"]
    return database | {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}


def local_secret(name: str) -> str:
    """Return a secret of this machine, made at first use and kept under `var/secrets/` for its owner alone."""
    return host.read_or_create_secret(var_dir() / "secrets" / name)


def revive(say: Callable[[str], None]) -> bool:
    moved = False
    for server in _used.values():
        if server.pid is not None:
            continue
        before = server.port
        say(f"{server.title} has ended; it is started again. Meanwhile pages say that the site is not available.")
        _start(server)
        say(f"{server.title} runs again.")
        moved |= server.port != before
    return moved


def stop_started() -> None:
    while _started_here:
        _started_here.pop().stop()


def _available(server: EmbeddedPostgres | EmbeddedValkey) -> bool:
    if os.environ.get("DPAL_NO_SERVERS") == "1":
        return server.status == "ready"
    server.data_dir.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
    _start(server)
    _used[server.data_dir] = server
    return True


def _start(server: EmbeddedPostgres | EmbeddedValkey) -> None:
    if server.start() and server.data_dir not in {other.data_dir for other in _started_here}:
        _started_here.append(server)
