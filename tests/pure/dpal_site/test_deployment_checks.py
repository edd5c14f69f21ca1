from types import SimpleNamespace

import pytest

from dpal_site.embedded.servers import database_settings
from dpal_site.operations.deployment_checks import check_connections, check_second_factor, plain_connections


def found(database="postgresql://dpal:x@127.0.0.1:5432/dpal", broker="redis://:x@localhost:6379/0", **changed):
    site = {
        "EMAIL_HOST": "localhost",
        "EMAIL_USE_TLS": False,
        "EMAIL_USE_SSL": False,
        "OIDC_ISSUER": "",
        "CLAMD_URL": "",
    } | changed
    site.setdefault("STORAGES", {"default": {}})
    site |= {"DATABASES": {"default": database_settings(database)}, "CELERY_BROKER_URL": broker}
    return [hint.partition(":")[0] for hint in plain_connections(SimpleNamespace(**site))]


def test_what_stays_on_one_machine_may_talk_in_plain():
    assert found() == []


@pytest.mark.parametrize(
    ("database", "remarked"),
    [
        ("postgresql://dpal:x@db.example.org/dpal", True),
        ("postgresql://dpal:x@db.example.org/dpal?sslmode=require", True),
        ("postgresql://dpal:x@db.example.org/dpal?sslmode=verify-full", False),
    ],
)
def test_servers_on_other_hosts_without_tls_are_found(database, remarked):
    assert ("DATABASE_URL" in found(database=database)) is remarked


@pytest.mark.parametrize(
    ("broker", "remarked"),
    [
        ("redis://:x@broker.example.org:6379/0", True),
        ("rediss://:x@broker.example.org:6379/0", False),
        ("rediss://:x@broker.example.org:6379/0?ssl_cert_reqs=none", True),
        ("amqp://u:x@broker.example.org//", True),
        ("amqps://u:x@broker.example.org//", False),
    ],
)
def test_a_broker_elsewhere(broker, remarked):
    assert ("CELERY_BROKER_URL" in found(broker=broker)) is remarked


def test_each_is_a_warning_of_the_check(settings):
    settings.OIDC_ISSUER = "http://issuer.example.org"
    assert "dpal.W001" in [warning.id for warning in check_connections(None)]


def test_nobody_with_a_second_factor_is_remarked(settings):
    settings.SECOND_FACTOR = frozenset()
    assert [warning.id for warning in check_second_factor(None)] == ["dpal.W002"]
    settings.SECOND_FACTOR = frozenset({"all"})
    assert check_second_factor(None) == []
