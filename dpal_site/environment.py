"""Settings from the environment: variables, files they name, addresses of mail and files."""

import os
import re
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from environs import FileAwareEnv, validate


class SiteEnv(FileAwareEnv):
    """Variables by type and rule, or files that `NAME_FILE` names, as containers hand over secrets."""

    def _get_value(self, env_key: str, default: Any) -> Any:
        if os.environ.get(env_key) and os.environ.get(f"{env_key}_FILE"):
            raise ImproperlyConfigured(f"set {env_key} or {env_key}_FILE, not both")
        return super()._get_value(env_key, default) or default


env = SiteEnv(strip_whitespace=True)
# Arrow's own allocator keeps most of what it has freed; the system's gives it back, in the same time.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
AT_LEAST_ONE = validate.Range(min=1)
NOT_NEGATIVE = validate.Range(min=0)
SCANNER_ADDRESS = validate.Regexp(
    r"(none|tcp://[^/:@]+:\d+|unix:///.+)?\Z", error="CLAMD_URL must be tcp://host:port, unix:///path or none"
)


def one_of_words(*names: str) -> validate.OneOf:
    return validate.OneOf(names, error="must be " + " or ".join(repr(name) if name else "unset" for name in names))


PORTS = {"smtp": 587, "smtps": 465}


def mail_settings(url: str, *, folder: Path) -> dict[str, object]:
    """Read `smtp://user:password@host:587/?from=name@example.org`, `smtps://...`, `console:`, or write to `folder`."""
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    sender: dict[str, object] = {"DEFAULT_FROM_EMAIL": query.get("from", "dpal@localhost")}
    if not url:
        return sender | {"EMAIL_BACKEND": "django.core.mail.backends.filebased.EmailBackend", "EMAIL_FILE_PATH": folder}
    if parts.scheme == "console":
        return sender | {"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}
    if parts.scheme not in PORTS or not parts.hostname:
        raise ImproperlyConfigured(f"EMAIL_URL must be smtp://, smtps:// or console:, got scheme {parts.scheme!r}")
    return sender | {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp" and query.get("tls") != "0",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_TIMEOUT": 10,
    }


# A path alone: no query, no key, no port, no way up.
TABLE_PLACE = re.compile(r"(?!.*/\.{1,2}(/|$))(file:///|s3://[^/\s:@%?#\\]+(/|$))[^\s@%?#\\]*")
OPTIONS = ("endpoint_url", "region", "addressing_style")
# An upload is kept in memory up to this size while it is read, and on disk above.
MEMORY_BYTES = 16 * 1024**2
# Parts of 16 MiB allow a file of 160 GB.
PART_BYTES = 16 * 1024**2


def storage_settings(url: str) -> dict[str, Any]:
    """Return the storage at `file:///folder` or `s3://bucket/prefix?endpoint_url=...&region=...`."""
    parts = urlsplit(url)
    if parts.scheme == "s3" and parts.netloc:
        return _bucket(parts.netloc, unquote(parts.path).strip("/"), parts.query)
    if parts.scheme != "file" or not parts.path:
        raise ImproperlyConfigured(
            f"STORAGE_URL must look like file:///folder or s3://bucket/prefix, got scheme {parts.scheme!r}"
        )
    return {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": unquote(parts.path),
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    }


def table_places() -> list[str]:
    """Return the folders and buckets whose tables may be registered; `{project}` stands for a project's short name."""
    given: list[str] = env.list("POOL_SOURCES", [])
    places = [place.strip() for place in given]
    if any(not TABLE_PLACE.fullmatch(place) for place in places):
        raise ImproperlyConfigured("POOL_SOURCES must list file:///folder or s3://bucket/prefix, by comma")
    return places


def _bucket(bucket: str, prefix: str, query: str) -> dict[str, Any]:
    from boto3.s3.transfer import TransferConfig  # noqa: PLC0415  # slow import
    from botocore.config import Config  # type: ignore[import-untyped]  # noqa: PLC0415  # slow import

    if "@" in bucket or ":" in bucket:
        raise ImproperlyConfigured(
            "STORAGE_URL names a bucket alone; the key goes into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    given = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(set(given) - set(OPTIONS)):
        raise ImproperlyConfigured(f"STORAGE_URL knows {', '.join(OPTIONS)}, got {', '.join(unknown)}")
    endpoint = given.get("endpoint_url", "")
    if endpoint and urlsplit(endpoint).scheme not in ("http", "https"):
        raise ImproperlyConfigured("endpoint_url in STORAGE_URL must start with https:// (or http:// on this machine)")
    # Without a key boto3 looks for the role that the host or the container has.
    key, secret = env.str("AWS_ACCESS_KEY_ID", ""), env.str("AWS_SECRET_ACCESS_KEY", "")
    if bool(key) != bool(secret):
        raise ImproperlyConfigured("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY together, or neither")
    return {
        "BACKEND": "annotation.work.object_storage.ObjectStorage",
        "OPTIONS": {
            "bucket_name": bucket,
            "location": prefix,
            "endpoint_url": endpoint or None,
            "region_name": given.get("region") or None,
            "access_key": key or None,
            "secret_key": secret or None,
            "default_acl": None,
            # Names are drawn or numbered, so the one who writes again under one means to replace it.
            "file_overwrite": True,
            "max_memory_size": MEMORY_BYTES,
            "transfer_config": TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES),
            "client_config": Config(
                signature_version="s3v4",
                s3={"addressing_style": given.get("addressing_style") or ("path" if endpoint else "auto")},
                connect_timeout=5,
                read_timeout=60,
                retries={"mode": "standard", "max_attempts": 4},
            ),
        },
    }


def broker_tls(url: str, ca_file: str = "") -> dict[str, Any]:
    address = urlsplit(url)
    if address.scheme == "amqps":
        # None stands for the host in the address; but kombu makes a number of this name, which no certificate is for.
        name = "localhost" if address.hostname == "localhost" else None
        return {"cert_reqs": ssl.CERT_REQUIRED, "ca_certs": ca_file or None, "server_hostname": name}
    if address.scheme == "rediss":
        return {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_ca_certs": ca_file or None, "ssl_check_hostname": True}
    return {}
