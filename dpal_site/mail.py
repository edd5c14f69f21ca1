"""Where mail goes: EMAIL_URL as Django's settings."""

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

PORTS = {"smtp": 587, "smtps": 465}


def mail_settings(url: str, *, folder: Path) -> dict[str, object]:
    """Read `smtp://user:password@host:587/?from=name@example.org`, `smtps://...`, `console:`, or write to `folder`.

    `smtp` begins TLS after connecting unless the query says `tls=0`; `smtps` connects with it.
    """
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
