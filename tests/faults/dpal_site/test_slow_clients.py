import contextlib
import http.client
import time

import pytest

from tests.slow_senders import HEAD, besiege, slow_senders

pytestmark = pytest.mark.faults


@pytest.fixture
def slow(live_site):
    with slow_senders(live_site.url) as begin:
        yield begin


def seconds_to_answer(url, path="/healthz", attempts=5):
    """Return what one of a few answers takes, each over a connection of its own: the middle one, on a busy machine."""
    taken = []
    for _ in range(attempts):
        began = time.monotonic()
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
        connection.request("GET", path)
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
        connection.close()
        taken.append(time.monotonic() - began)
    return sorted(taken)[attempts // 2]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_silent_and_slow_clients_keep_nobody_out(live_site, slow):
    """Thirty half-open connections, or seven slow senders, silenced a site whose threads waited for them."""
    seconds_to_answer(live_site.url, "/login/")
    besiege(slow)
    time.sleep(1.5)
    assert seconds_to_answer(live_site.url) < 1
    assert seconds_to_answer(live_site.url, "/login/") < 1


@pytest.mark.slow
def test_more_connections_than_places_make_the_oldest_go(live_site, slow):
    first = slow(b"GET /healthz HT")
    for _ in range(600):
        slow(b"")
    assert seconds_to_answer(live_site.url) < 1
    first.settimeout(5)
    assert first.recv(100) == b""


@pytest.mark.slow
def test_who_takes_too_long_is_closed_and_long_bodies_have_a_pace(live_site, slow):
    half = slow(b"GET /healthz HT")
    dripping = slow(HEAD + b"Content-Length: 5000000\r\n\r\n", b"x" * 500)
    too_long = slow(b"GET /" + b"x" * 70_000)
    assert too_long.recv(100).startswith(b"HTTP/1.0 431 ")
    assert half.recv(100) == b""
    began = time.monotonic()
    dripping.settimeout(60)
    with contextlib.suppress(ConnectionResetError):
        while dripping.recv(4096):
            pass
    assert time.monotonic() - began < 30


@pytest.mark.slow
def test_requests_one_after_another_and_bodies_of_every_length(live_site, slow):
    two = slow(b"\r\nGET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 2)
    said = b""
    while said.count(b"ok\n") < 2:
        piece = two.recv(4096)
        assert piece
        said += piece
    for length in (0, 10, 200_000, 4_000_000):
        connection = http.client.HTTPConnection(live_site.url.removeprefix("http://"), timeout=20)
        for _ in range(2):
            connection.request("POST", "/login/", b"a" * length, {"Content-Type": "application/x-www-form-urlencoded"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 403  # for want of a token
            if length > 65_536:  # a body nobody asked for is not read to its end
                connection.close()
        connection.close()
    expecting = slow(HEAD + b"Content-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
    said = expecting.recv(100)
    assert said.startswith(b"HTTP/1.1 100 ")
    expecting.sendall(b"a=bc")
    # An answer may come in any pieces, the first of them with the word to go on.
    while piece := expecting.recv(4096):
        said += piece
    assert b" 403 " in said
