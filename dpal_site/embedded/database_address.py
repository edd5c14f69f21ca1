"""Turn a database URL into Django's settings."""

from typing import Any
from urllib.parse import parse_qsl, unquote

from dpal_site.embedded.host import UnsupportedUrl

SCHEMES = ("postgresql", "postgres")
ENGINE = "django.db.backends.postgresql"


def parse_database_url(url: str) -> dict[str, Any]:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in SCHEMES:
        shown = repr(scheme) if separator else "no scheme"
        raise UnsupportedUrl(f"DATABASE_URL must start with postgresql://, got {shown}")
    rest, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    authority, _, name = rest.partition("/")
    credentials, _, address = authority.rpartition("@")
    user, _, password = credentials.partition(":")
    host, port = _split_address(address)
    parts = {"user": user, "password": password, "host": host, "port": port, "dbname": name}
    found = {key: options.pop(key, "") or unquote(value) for key, value in parts.items()}
    if found["port"] and not found["port"].isdigit():
        raise UnsupportedUrl(
            "the port in DATABASE_URL is not a number; '/', '@', ':', '?' in a password are written %2F, %40, %3A, %3F"
        )
    if not found["dbname"]:
        raise UnsupportedUrl("DATABASE_URL names no database: write postgresql://user:password@host:5432/NAME")
    return {
        "ENGINE": ENGINE,
        "NAME": found["dbname"],
        "USER": found["user"],
        "PASSWORD": found["password"],
        "HOST": found["host"],
        "PORT": found["port"],
        "OPTIONS": options,
    }


def through_pooler(database: dict[str, Any]) -> dict[str, Any]:
    """Return Django's settings for the same database behind a pooler that lends sessions by transaction."""
    if "options" in database["OPTIONS"]:
        raise UnsupportedUrl(
            "a pooler refuses the option `options` of DATABASE_URL; set what it says on the role or in the pooler"
        )
    # A cursor lives in one session, and the next statement may get another.
    return database | {"DISABLE_SERVER_SIDE_CURSORS": True}


def _split_address(address: str) -> tuple[str, str]:
    if address.startswith("["):
        host, _, port = address[1:].partition("]")
        return host, port.removeprefix(":")
    host, _, port = address.partition(":")
    return host, port
