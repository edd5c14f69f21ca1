"""Tokens and keys of sites, kept between two runs and readable by their owner alone."""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import platformdirs

from dpal.errors import DpalError
from dpal.files import write_whole

OWNER_ALONE = 0o600


@dataclass(frozen=True)
class Known:
    """Known facts of one site; `public_key` was its signing key when it was first met, or is one you gave."""

    token: str = ""
    public_key: str = ""


def config_folder() -> Path:
    return Path(os.environ.get("DPAL_CONFIG") or platformdirs.user_config_dir("dpal", appauthor=False))


def cache_folder() -> Path:
    return Path(os.environ.get("DPAL_CACHE") or platformdirs.user_cache_dir("dpal", appauthor=False))


def stored_file(digest: str) -> Path:
    """Return where a file with this SHA-256 is kept, whether it is there or not."""
    return cache_folder() / "files" / digest[:2] / digest


def site_address(text: str) -> str:
    """Return the address of a site without what follows its host; one without encryption is for this machine alone."""
    parts = urlsplit(text if "://" in text else f"https://{text}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DpalError(f"{text} is no address of a site: write it like https://dpal.example.org.")
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise DpalError(f"{text} is not encrypted, and a token would be read on the way: write https://.")
    return f"{parts.scheme}://{parts.netloc}"


def known_of(site: str) -> Known:
    found = _read()["sites"].get(site, {})
    return Known(str(found.get("token", "")), str(found.get("public_key", "")))


def last_site() -> str:
    return str(_read().get("last", ""))


def remember(site: str, *, token: str | None = None, public_key: str | None = None) -> None:
    body = _read()
    given = {"token": token, "public_key": public_key}
    known = replace(known_of(site), **{name: value for name, value in given.items() if value is not None})
    body["sites"][site] = asdict(known)
    if token is not None:
        body["last"] = site
    write_whole(_path(), (json.dumps(body, indent=1) + "\n").encode(), mode=OWNER_ALONE)


def _path() -> Path:
    return config_folder() / "sites.json"


def _read() -> dict[str, Any]:
    try:
        body = json.loads(_path().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"sites": {}}
    except ValueError as error:
        raise DpalError(f"{_path()} cannot be read: remove it and log in again.") from error
    found: dict[str, Any] = body
    return found
