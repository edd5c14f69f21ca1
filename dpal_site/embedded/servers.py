"""The servers a site falls back on: where no URL is set, an embedded Postgres and an embedded Valkey under `var/`."""

import os
from pathlib import Path
from typing import Any

from dpal_site.embedded import host
from dpal_site.embedded.database_address import parse_database_url
from dpal_site.embedded.postgres import EmbeddedPostgres
from dpal_site.embedded.valkey import EmbeddedValkey

REPOSITORY = Path(__file__).resolve().parents[2]
# With DPAL_NO_SERVERS=1 nothing is started: settings load, and the first connection fails at once, saying why.
LABEL_ROLE = "dpal_label"
NOWHERE = "/DPAL_NO_SERVERS is set and no server runs"
_started_here: list[EmbeddedPostgres | EmbeddedValkey] = []


def var_dir() -> Path:
    """Return the folder of everything the site writes: DPAL_VAR, else `var/` beside the code."""
    return Path(os.environ.get("DPAL_VAR") or REPOSITORY / "var").resolve()


def postgres() -> EmbeddedPostgres:
    """Return this site's embedded Postgres, running or not."""
    return EmbeddedPostgres(var_dir() / "postgres")


def valkey() -> EmbeddedValkey:
    """Return this site's embedded Valkey, running or not."""
    return EmbeddedValkey(var_dir() / "valkey")


def database_url() -> str:
    """Return the URL of the embedded database `dpal`, its server started when needed."""
    server = postgres()
    return server.url() if _available(server) else f"postgresql:///dpal?host={NOWHERE}"


def label_database_url() -> str:
    """Return the URL of the embedded database for the role of the label process."""
    _, _, address = database_url().rpartition("@")
    return f"postgresql://{LABEL_ROLE}:{local_secret('label-database-password')}@{address}"


def broker_url() -> str:
    """Return the URL of the embedded broker, its server started when needed."""
    server = valkey()
    return server.url() if _available(server) else f"redis+socket://{NOWHERE.replace(' ', '%20')}"


def database_settings(url: str | None) -> dict[str, Any]:
    """Return Django's settings for the database at `url`, or for the embedded one.

    Connections are kept between requests, for opening one costs more than a label; a restarted server is noticed.
    """
    return parse_database_url(url or database_url()) | {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}


def local_secret(name: str) -> str:
    """Return a secret of this machine, made at first use and kept under `var/secrets/` for its owner alone."""
    return host.read_or_create_secret(var_dir() / "secrets" / name)


def stop_started() -> None:
    """Stop the servers this process started; those that ran before keep running."""
    while _started_here:
        _started_here.pop().stop()


def _available(server: EmbeddedPostgres | EmbeddedValkey) -> bool:
    if os.environ.get("DPAL_NO_SERVERS") == "1":
        return server.status == "ready"
    server.data_dir.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
    if server.start():
        _started_here.append(server)
    return True
