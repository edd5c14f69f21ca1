"""Turn STORAGE_URL into Django's settings: a folder, or a bucket of an S3 store."""

import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from dpal_site.environment import env

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
        "BACKEND": "annotation.files.object_storage.ObjectStorage",
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
