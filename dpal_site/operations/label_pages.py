"""Pages that this process serves: all of them, the label pages alone, or all but those."""

import http.client
from collections.abc import Iterable
from enum import StrEnum
from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import quote, urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.translation import gettext as _

from annotation.people.identity import network_address
from dpal_site.middleware import Middleware
from privacy.wording import in_english


class Part(StrEnum):
    ALL = ""
    LABEL = "label"
    WEB = "web"


LABEL_PAGES = frozenset(
    {
        "annotation:label",
        "annotation:undo",
        "annotation:submit",
        "annotation:skip",
        "annotation:read_guidelines",
        "annotation:told_picture",
        "annotation:why",
        "annotation:flag",
        "annotation:comment",
        "annotation:question_image",
        "annotation:own_statistics",
        "annotation:own_answers",
        "annotation:correct_answer",
        "annotation:write_back",
        "annotation:crowd_done",
    }
)
# What each process answers for itself.
EVERYWHERE = frozenset({"healthz", "readyz", "logout"})
# In a request's environment: the status that says why the label process was not asked.
NOT_HANDED_ON = "dpal.not_handed_on"
RETRY_AFTER_SECONDS = 5
SEE_OTHER_KEEPING_METHOD = 307
MISDIRECTED = 421


def is_label_page(path: str) -> bool:
    try:
        return resolve(path).view_name in LABEL_PAGES
    except Resolver404:
        return False


class PartMiddleware(Middleware):
    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        name = request.resolver_match.view_name if request.resolver_match else ""
        if not settings.SITE_PART or name in EVERYWHERE:
            return None
        wanted = Part.LABEL if name in LABEL_PAGES else Part.WEB
        if wanted == settings.SITE_PART:
            return None
        if (status := request.META.get(NOT_HANDED_ON)) is not None:
            return _not_handed_on(request, status)
        origin = settings.LABEL_URL if wanted == Part.LABEL else settings.WEB_URL
        # A proxy that leads here what it should lead there would do so again.
        if not origin or urlsplit(origin).netloc == request.get_host():
            reason = in_english("The site's proxy is misconfigured for this address.")
            return render(request, "refused.html", {"reason": reason}, status=MISDIRECTED)
        return HttpResponse(
            status=SEE_OTHER_KEEPING_METHOD, headers={"Location": origin.rstrip("/") + request.get_full_path()}
        )


def _not_handed_on(request: HttpRequest, status: int) -> HttpResponse:
    reason = _("The label page does not answer. Nothing was stored; try again.")
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        reason = _("The request is too large for a label page.")
    response = render(request, "refused.html", {"reason": reason}, status=status)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


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
    def __init__(self, application: WSGIApplication, label_process: str) -> None:
        self._application = application
        self._process = urlsplit(label_process).netloc

    def __call__(self, environment: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = WSGIRequest(environment)
        if not is_label_page(request.path_info):
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
        looking = {"REQUEST_METHOD": "GET", "CONTENT_LENGTH": "", "wsgi.input": BytesIO(), NOT_HANDED_ON: status}
        return self._application(environment | looking, start_response)


def _address(environment: WSGIEnvironment) -> str:
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
