"""What is said to be whole, the server's own reader takes without waiting for more."""

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import ParseException
from gunicorn.http.parser import RequestParser
from hypothesis import given
from hypothesis import strategies as st

from dpal_site.serving import arrival
from dpal_site.serving.arrival import ConnectionInput, arrived

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
WORDS = [
    b"GET / HTTP/1.1\r\n",
    b"POST /content-length: HTTP/1.1\r\n",
    b"Host: a\r\n",
    b"Content-Length: 3\r\n",
    b"content-length:  3 \r\n",
    b"Content-Length: 03\r\n",
    b"Content-Length: +3\r\n",
    b"Content-Length: 3, 3\r\n",
    b"Content-Length : 3\r\n",
    b"Content_Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Expect: 100-continue\r\n",
    b"X: 1\r\n Content-Length: 9\r\n",
    b"\r\n",
    b"abc",
    b"ab",
    b"\n\n",
]


class Ended(Exception):
    """The reader asked for bytes that have not come."""


def pieces(brought):
    """Give the bytes, then fail as a wait would."""
    yield brought
    raise Ended


@pytest.mark.parametrize(
    ("brought", "state"),
    [
        (b"", ConnectionInput.NOTHING),
        (b"GET / HT", ConnectionInput.PART),
        (GET, ConnectionInput.WHOLE),
        (GET + b"GET /", ConnectionInput.WHOLE),
        (POST + b"Content-Length: 3\r\n\r\nab", ConnectionInput.PART),
        (POST + b"Content-Length: 3\r\n\r\nabc", ConnectionInput.WHOLE),
        (POST + b"Content-Length: 9999999\r\n\r\nabc", ConnectionInput.LONG),
        (POST + b"Content-Length: 3\r\nContent-Length: 9\r\n\r\nabc", ConnectionInput.LONG),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n", ConnectionInput.LONG),
        (POST + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n", ConnectionInput.LONG),
        (b"GET /" + b"a" * arrival.MOST_HEAD_BYTES, ConnectionInput.TOO_LONG),
    ],
)
def test_states(brought, state):
    assert arrived(brought) is state


@given(st.lists(st.sampled_from(WORDS), max_size=8).map(b"".join))
def test_nobody_waits_behind_a_whole_request(said):
    brought = said.lstrip(b"\r\n")
    if arrived(brought) is not ConnectionInput.WHOLE:
        return
    try:
        request = next(RequestParser(Config(), pieces(brought), ("127.0.0.1", 1)))
        request.body.read()
    except ParseException:
        pass  # refused, and at once
