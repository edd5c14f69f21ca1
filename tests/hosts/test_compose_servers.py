import socket
import ssl

import psycopg
import pytest
import redis
from kombu import Connection

from dpal_site.environment import broker_tls
from tests.hosts.compose_servers import make_secrets

pytestmark = [pytest.mark.faults, pytest.mark.hosts, pytest.mark.slow]


@pytest.fixture(scope="module")
def another_authority(tmp_path_factory):
    folder = tmp_path_factory.mktemp("other") / "secrets"
    make_secrets(folder)
    return folder / "authority"


def tls_of(url):
    with psycopg.connect(url) as connection:
        query = "SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        return connection.execute(query).fetchone()


def test_the_database_takes_the_address_that_was_made(servers):
    assert tls_of(servers.database_url()) == (True, "TLSv1.3")


@pytest.mark.parametrize(
    ("demand", "instead", "refusal"),
    [
        ("sslmode=verify-full", "sslmode=disable", "no encryption"),
        ("sslmode=verify-full", "sslmode=verify-full&ssl_max_protocol_version=TLSv1.2", "protocol version"),
        ("@localhost:", "@127.0.0.1:", "does not match host name"),
        ("postgresql://dpal:", "postgresql://dpal:0", "password authentication failed"),
    ],
    ids=["plain", "old", "name", "password"],
)
def test_the_database_refuses(servers, demand, instead, refusal):
    url = servers.database_url()
    assert demand in url
    with pytest.raises(psycopg.OperationalError, match=refusal):
        psycopg.connect(url.replace(demand, instead, 1))


def test_a_database_of_another_authority_is_not_talked_to(servers, another_authority):
    url = servers.database_url().replace(str(servers.secrets / "authority"), str(another_authority))
    with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
        psycopg.connect(url)


def reaches(url, authority):
    with Connection(url, ssl=broker_tls(url, str(authority)), connect_timeout=30) as connection:
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=60)
        return connection.connected


def test_the_broker_takes_the_address_that_was_made(servers):
    assert reaches(servers.broker_url, servers.secrets / "authority")


def test_the_broker_is_not_talked_to_in_plain_by_another_name_or_for_another_authority(servers, another_authority):
    ours = servers.secrets / "authority"
    for url, authority in (
        (servers.broker_url.replace("rediss:", "redis:"), ours),
        (servers.broker_url.replace("@localhost:", "@127.0.0.1:"), ours),
        (servers.broker_url, another_authority),
        (servers.broker_url.replace("rediss://:", "rediss://:0"), ours),
    ):
        with pytest.raises(Exception):  # noqa: B017 - each client has its own
            reaches(url, authority)


def test_the_broker_answers_nobody_without_tls(servers):
    with redis.Redis(port=servers.valkey.port, socket_timeout=30) as client, pytest.raises(redis.RedisError):
        client.ping()
    old = ssl.TLSVersion.TLSv1_2
    password = servers.secret("valkey_password")
    words = {"port": servers.valkey.port, "ssl": True, "ssl_ca_certs": str(servers.secrets / "authority")}
    with redis.Redis("localhost", password=password, **words) as client:
        assert client.ping()
    context = ssl.create_default_context(cafile=servers.secrets / "authority")
    context.maximum_version = old
    with pytest.raises(ssl.SSLError):
        shake_hands(context, servers.valkey.port)


def shake_hands(context, port):
    with (
        socket.create_connection(("localhost", port), 30) as plain,
        context.wrap_socket(plain, server_hostname="localhost"),
    ):
        pass


def test_the_health_checks_see_a_certificate_that_is_not_trusted(servers, another_authority):
    trusted = servers.secrets / "authority"
    kept = trusted.read_bytes()
    assert servers.postgres.is_healthy()
    assert servers.valkey.is_healthy()
    try:
        trusted.write_bytes(another_authority.read_bytes())
        assert not servers.postgres.is_healthy()
        assert not servers.valkey.is_healthy()
    finally:
        trusted.write_bytes(kept)
