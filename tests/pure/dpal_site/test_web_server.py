"""The web server agrees with a proxy on where a request ends, or refuses it."""

import io

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import InvalidHeader, ParseException
from gunicorn.http.parser import RequestParser

HEAD = b"POST /login/ HTTP/1.1\r\nHost: example.org\r\n"


def requests(sent):
    """Return the path and body of every request in what a connection brought."""
    parser = RequestParser(Config(), io.BytesIO(sent), ("127.0.0.1", 1))
    return [(request.path, request.body.read()) for request in parser]


def test_one_request_is_one():
    assert requests(HEAD + b"Content-Length: 4\r\n\r\nabcd") == [("/login/", b"abcd")]


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 4\r\nContent-Length: 40\r\n",
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: +4\r\n",
        b"Transfer-Encoding: xchunked\r\nContent-Length: 4\r\n",
        b"Transfer-Encoding : chunked\r\n",
    ],
)
def test_a_request_with_two_lengths_is_refused(framing):
    hidden = b"0\r\n\r\nGET /admin/ HTTP/1.1\r\nHost: example.org\r\n\r\n"
    with pytest.raises((InvalidHeader, ParseException)):
        requests(HEAD + framing + b"\r\n" + hidden)
