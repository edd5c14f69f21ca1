"""Checks that `manage.py check` adds: plain connections, a role above its rules, no second factor, no scanner."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004 - Django's own name
from django.db import DatabaseError, connection

from dpal_site.operations import roles

# Names of this machine: what talks to them leaves no host.
NEAR = frozenset({"", "localhost", "127.0.0.1", "::1"})
CHECKED_MODES = frozenset({"verify-full", "verify-ca"})
# Settings of the database server under which no row and no statement gets into its log; the first value is advised. An
# error quotes the row that broke a rule, and a statement carries its values.
KEEPS_OUT = {
    "log_error_verbosity": ("terse",),
    "log_min_error_statement": ("panic", "fatal"),
    "log_statement": ("none", "ddl"),
    "log_min_duration_statement": ("-1",),
    "log_min_duration_sample": ("-1",),
    "log_transaction_sample_rate": ("0",),
}
ENCRYPTED_BROKERS = frozenset({"rediss", "amqps", "sqs"})


def _is_near(host: str | None) -> bool:
    return (host or "") in NEAR or (host or "").startswith("/")


def plain_connections(site: Any) -> list[str]:
    found = []
    database = site.DATABASES["default"]
    hosts = str(database.get("HOST", "")).split(",")
    mode = database.get("OPTIONS", {}).get("sslmode", "")
    if not all(map(_is_near, hosts)) and mode not in CHECKED_MODES:
        found.append("DATABASE_URL: add sslmode=verify-full and sslrootcert")
    broker = urlsplit(site.CELERY_BROKER_URL)
    asks = parse_qs(broker.query).get("ssl_cert_reqs", ["required"])[-1].lower()
    if not _is_near(broker.hostname) and (broker.scheme not in ENCRYPTED_BROKERS or asks in ("none", "cert_none")):
        found.append("CELERY_BROKER_URL: use rediss:// or amqps://, with ssl_cert_reqs=required")
    if not _is_near(site.EMAIL_HOST) and not (site.EMAIL_USE_TLS or site.EMAIL_USE_SSL):
        found.append("EMAIL_URL: leave out tls=0")
    store = urlsplit(site.STORAGES["default"].get("OPTIONS", {}).get("endpoint_url") or "")
    if not _is_near(store.hostname) and store.scheme != "https":
        found.append("STORAGE_URL: use https in endpoint_url")
    if site.OIDC_ISSUER and urlsplit(site.OIDC_ISSUER).scheme != "https":
        found.append("OIDC_ISSUER: use https")
    if not _is_near(urlsplit(site.CLAMD_URL).hostname):
        found.append("CLAMD_URL: use its socket, unix:///..., or put a tunnel between")
    return found


@register(Tags.security, deploy=True)
def check_connections(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[CheckMessage]:
    return [
        Warning("A server on another host is reached without TLS.", hint=hint, id="dpal.W001")
        for hint in plain_connections(settings)
    ]


@register(Tags.security, deploy=True)
def check_second_factor(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[CheckMessage]:
    if settings.SECOND_FACTOR:
        return []
    return [Warning("Nobody must have a second factor.", hint="Set SECOND_FACTOR=all.", id="dpal.W002")]


@register(Tags.security, deploy=True)
def check_scanner(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[CheckMessage]:
    if settings.CLAMD_URL or settings.SERVES_LABELS_ALONE:
        return []
    hint = "Set CLAMD_URL to a clamd, or to none where files come from people you trust."
    return [Warning("Uploads are not scanned for viruses.", hint=hint, id="dpal.W004")]


@register(Tags.database)
def check_role(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None, **options: Any
) -> list[CheckMessage]:
    """Refuse a database role that could lift the ledger's rules: `manage.py check --database default`."""
    if not databases:
        return []
    above = False
    with suppress(DatabaseError), connection.cursor() as cursor:
        above = roles.above_its_rules(cursor)
    hint = "Name that role in DATABASE_OWNER_URL for `migrate` alone, and another one in DATABASE_URL."
    return [Error("The site's database role owns its tables.", hint=hint, id="dpal.E006")] if above else []


@register(Tags.database)
def check_statement_log(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None, **options: Any
) -> list[CheckMessage]:
    """Warn of a server that writes rows or statements, which hold records, into its log: `check --database default`."""
    if not databases:
        return []
    talkative: list[str] = []
    with suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(KEEPS_OUT)])
        talkative = sorted(name for name, value in cursor.fetchall() if value not in KEEPS_OUT[name])
    hint = "Set " + ", ".join(f"{name}={KEEPS_OUT[name][0]}" for name in talkative) + " on the server."
    return [Warning("The database writes records into its log.", hint=hint, id="dpal.W005")] if talkative else []


@register(Tags.database)
def check_page_limit(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None, **options: Any
) -> list[CheckMessage]:
    """Warn of a pooler that gives the statements of pages no time limit: `manage.py check --database default`."""
    if not databases or not settings.DATABASE_POOLER or settings.SITE_PART == "":
        return []
    limit = None
    with suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout')")
        limit = cursor.fetchone()[0]
    if limit != "0":
        return []
    hint = "Give pages an address of their own whose connect_query sets statement_timeout."
    return [Warning("Statements of pages have no time limit behind this pooler.", hint=hint, id="dpal.W003")]
