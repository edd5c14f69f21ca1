import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpal_site.embedded import host


@pytest.fixture(params=["as on Linux", "as on macOS"], autouse=True)
def system(request, monkeypatch, tmp_path):
    if request.param == "as on macOS":
        monkeypatch.setattr(host, "PROC", tmp_path / "proc")


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_listener_takes_its_port(address):
    with socket.socket() as listener:
        listener.bind((address, 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert not host.port_is_free(port)
        assert host.free_port_from(port) > port
    assert host.port_is_free(host.free_port())


def test_a_free_port_is_none_that_a_connection_takes():
    found = {host.free_port() for _ in range(20)}
    assert len(found) > 10
    assert found <= set(host.QUIET_PORTS)


def test_everyone_who_asks_at_once_sees_one_secret(tmp_path):
    path = tmp_path / "secrets" / "key"
    with ThreadPoolExecutor(8) as threads:
        seen = set(threads.map(lambda _: host.read_or_create_secret(path), range(32)))
    assert len(seen) == 1
    assert len(seen.pop()) >= 48
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
