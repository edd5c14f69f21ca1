"""One address for a site of two processes: the web server hands requests for label pages on to the label process."""

import http.client
from collections.abc import Iterable
from http import HTTPStatus
from io import BytesIO
from urllib.parse import quote, urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.core.exceptions import PermissionDenied
from django.core.handlers.wsgi import WSGIRequest

from annotation.people.identity import network_address
from dpal_site import parts

# What is said between two neighbours and goes no further; who asks is told anew.
BETWEEN_NEIGHBOURS = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding"}
    | {"upgrade", "expect", "content-length", "x-forwarded-for"}
)
# Said by whoever sends an answer, which in the end is this process.
OWN_WORDS = frozenset({"connection", "keep-alive", "transfer-encoding", "server", "date"})
# Answers, comments and flags are short.
MOST_BYTES = 1024 * 1024
# A little more than a statement of the label role may take.
PATIENCE_SECONDS = 40


class LabelFront:
    """Answer by the application, or by the label process where the address is one of its pages."""

    def __init__(self, application: WSGIApplication, label_process: str) -> None:
        self._application = application
        self._process = urlsplit(label_process).netloc

    def __call__(self, environment: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = WSGIRequest(environment)
        if not parts.is_label_page(request.path_info):
            return self._application(environment, start_response)
        body = request._stream.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            return self._refusal_page(environment, start_response, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        connection = http.client.HTTPConnection(self._process, timeout=PATIENCE_SECONDS)
        try:
            connection.request(request.method or "", _address(environment), body or None, _headers(request))
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            return self._refusal_page(environment, start_response, HTTPStatus.SERVICE_UNAVAILABLE)
        finally:
            connection.close()
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in OWN_WORDS]
        start_response(f"{answer.status} {answer.reason}", headers)
        return [content]

    def _refusal_page(
        self, environment: WSGIEnvironment, start_response: StartResponse, status: int
    ) -> Iterable[bytes]:
        # What was sent is read and gone: the page that says so is one that somebody looks at.
        looking = {"REQUEST_METHOD": "GET", "CONTENT_LENGTH": "", "wsgi.input": BytesIO(), parts.NOT_HANDED_ON: status}
        return self._application(environment | looking, start_response)


def _address(environment: WSGIEnvironment) -> str:
    """Write the path as it was understood here, so that no other page is understood there."""
    path = quote(environment["PATH_INFO"].encode("latin-1"))
    query = environment.get("QUERY_STRING")
    return f"{path}?{query}" if query else path


def _headers(request: WSGIRequest) -> dict[str, str]:
    try:
        who = network_address(request)
    except PermissionDenied:
        who = request.META.get("REMOTE_ADDR", "")
    kept = {name: value for name, value in request.headers.items() if name.lower() not in BETWEEN_NEIGHBOURS}
    return kept | {"X-Forwarded-For": who, "Connection": "close"}
