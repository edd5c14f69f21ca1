import logging

import pytest
from waitress.adjustments import Adjustments

from dpal_site.server import Request, WithoutRequest

HEAD = b"POST /login/ HTTP/1.1\r\nHost: example.org\r\n"


def requests(sent):
    found = []
    while sent:
        request = Request(Adjustments())
        sent = sent[request.received(sent) :]
        body = b""
        if not request.completed:
            taken = request.received(sent)
            body, sent = sent[:taken], sent[taken:]
        found.append((getattr(request, "path", ""), body, request.error and request.error.code))
        if request.error:
            break
    return found


def test_one_request_is_one():
    assert requests(HEAD + b"Content-Length: 4\r\n\r\nabcd") == [("/login/", b"abcd", None)]


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
def test_a_request_with_two_lengths_hides_no_other(framing):
    hidden = b"0\r\n\r\nGET /admin/ HTTP/1.1\r\nHost: example.org\r\n\r\n"
    first = requests(HEAD + framing + b"\r\n" + hidden)[0]
    assert first[2] in (400, 501)


def test_what_the_server_says_of_a_request_names_neither_address_nor_sender(caplog):
    log = logging.getLogger("waitress")
    kept = WithoutRequest()
    log.addFilter(kept)
    try:
        with caplog.at_level(logging.INFO, "waitress"):
            log.info("Client disconnected while serving %s", "/join/s3cret/")
            log.exception("Exception while serving /crowd/s3cret/")
    finally:
        log.removeFilter(kept)
    assert [record.getMessage() for record in caplog.records] == ["Client disconnected while", "Exception while"]
