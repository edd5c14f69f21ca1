"""The web server agrees with a proxy on where a request ends, or refuses it."""

import io
import logging

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import InvalidHeader, ParseException
from gunicorn.http.parser import RequestParser

from dpal_site import gunicorn_settings
from dpal_site.monitoring.server_log import ServerLog

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


def test_what_the_server_says_of_a_request_names_neither_address_nor_sender(capfd):
    configuration = Config()
    configuration.set("logger_class", gunicorn_settings.logger_class)
    assert configuration.logger_class is ServerLog
    log = ServerLog(configuration)
    log.warning("Invalid request from ip=203.0.113.9: Invalid request line: 'GET /join/s3cret/\n HTTP'")
    try:
        raise ValueError("s3cret")
    except ValueError:
        log.exception("Error handling request %s %s", "GET", "/join/s3cret/?next=/crowd/s3cret/")
    log.info("Listening at: %s", "http://127.0.0.1:8000")
    said = capfd.readouterr().err
    logging.getLogger("gunicorn.error").handlers.clear()
    assert "s3cret" not in said
    assert "203.0.113.9" not in said
    assert "A request failed\nbuiltins.ValueError" in said
    assert "test_what_the_server_says" in said
    assert "Listening at: http://127.0.0.1:8000" in said
