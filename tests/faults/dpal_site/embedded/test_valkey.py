import os
import signal
import socket
import time

import pytest
import redis

from dpal_site.embedded import host
from dpal_site.embedded.host import ServerNotStarted
from dpal_site.embedded.valkey import EmbeddedValkey, server_binary

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = EmbeddedValkey(tmp_path_factory.mktemp("valkey with a space") / "valkey")
    yield server
    server.stop()


@pytest.fixture
def running(server):
    server.start()
    with redis.Redis.from_url(server.url()) as client:
        client.set("fact", "kept")
        client.waitaof(1, 0, 2000)
    return server


def fact(server):
    with redis.Redis.from_url(server.url()) as client:
        return client.get("fact")


def test_a_killed_server_recovers_on_its_port(running):
    port, pid = running.port, running.pid
    os.kill(pid, signal.SIGKILL)
    assert host.wait_until(lambda: running.status == "stopped", 120)
    assert running.start()
    assert (fact(running), running.port) == (b"kept", port)
    assert running.pid != pid
    assert not running.start()


def test_a_stopped_server_keeps_its_data(running):
    running.stop()
    assert running.status == "stopped"
    assert running.pid is None
    running.start()
    assert fact(running) == b"kept"


def test_a_broken_file_is_told_and_not_overwritten(tmp_path):
    server = EmbeddedValkey(tmp_path / "valkey")
    server.start()
    server.stop()
    (manifest,) = (server.data_dir / "appendonlydir").glob("*.manifest")
    manifest.write_text("nonsense\n")
    with pytest.raises(ServerNotStarted, match=r"server\.log ends"):
        server.start(timeout_seconds=5)
    assert manifest.read_text() == "nonsense\n"


@pytest.mark.parametrize("password", ["wrong", ""])
def test_nobody_enters_without_the_password(running, password):
    right = (running.data_dir / "password").read_text()
    with (
        redis.Redis.from_url(running.url().replace(right, password)) as client,
        pytest.raises(redis.exceptions.AuthenticationError),
    ):
        client.get("fact")


def test_only_the_loopback_address_is_served(running):
    assert socket.create_connection(("127.0.0.1", running.port), 2).close() is None
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.2", running.port), 2)
    with redis.Redis.from_url(running.url()) as client:
        assert client.config_get("bind") == {"bind": "127.0.0.1"}


def test_secrets_are_for_the_owner_alone(running):
    assert running.data_dir.stat().st_mode & 0o077 == 0
    for name in ("password", "valkey.conf", "server.log"):
        assert (running.data_dir / name).stat().st_mode & 0o077 == 0


def test_a_pid_file_that_is_still_empty_is_waited_for(tmp_path, monkeypatch):
    """As a busy machine shows it for a moment between the file and the number in it."""
    slow = tmp_path / "valkey-server"
    slow.write_text(f'#!/bin/sh\n: > "$(dirname "$1")/server.pid"\n(sleep 0.5; exec {server_binary()} "$1") &\n')
    slow.chmod(0o700)
    server = EmbeddedValkey(tmp_path / "valkey", durable=False)
    monkeypatch.setattr("dpal_site.embedded.valkey.server_binary", lambda: slow)
    try:
        assert server.start()
        assert server.status == "ready"
    finally:
        server.stop()


def test_a_server_that_dies_before_it_listens_is_told_at_once(tmp_path, monkeypatch):
    dying = tmp_path / "valkey-server"
    dying.write_text('#!/bin/sh\necho $$ > "$(dirname "$1")/server.pid"\n')
    dying.chmod(0o700)
    server = EmbeddedValkey(tmp_path / "valkey", durable=False)
    monkeypatch.setattr("dpal_site.embedded.valkey.server_binary", lambda: dying)
    began = time.monotonic()
    with pytest.raises(ServerNotStarted):
        server.start(timeout_seconds=120)
    assert time.monotonic() - began < 60
