"""Rules of transport, headers of every page, and refusals turned into pages."""

import logging
import re
import time
import zoneinfo
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.utils import timezone

from annotation.errors import AnnotationError
from annotation.wording import localized
from annotation.work import limits
from dpal_site.celery import REQUEST_HEADER, request_id
from dpal_site.problems import MEANINGS, MEDIA_TYPE, problem_response
from learner.errors import LearnerError
from privacy.errors import BudgetExceeded, PrivacyError

logger = logging.getLogger(__name__)
API_PATH = "/api/"
# What a refusal says besides its text; the rest spoke of the page that is not sent.
PROBLEM_HEADERS = frozenset({"Allow", "Content-Range", "Retry-After", "WWW-Authenticate"})
# Parts of addresses that let in whoever has them.
SECRET_PARTS = frozenset({"secret", "token", "key", "uidb36"})
ZONE_NAME = re.compile(r"[A-Za-z0-9_+/-]{1,64}")


class Middleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)


class HeadersMiddleware(Middleware):
    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
        if request.resolver_match and SECRET_PARTS & set(request.resolver_match.kwargs):
            # The page's own files are asked for without saying where from: whoever logs them would log the secret.
            response.headers["Referrer-Policy"] = "strict-origin"
        return response


class RequestLogMiddleware(Middleware):
    """Give every request an id, and log one line for it: method, route and time, never the address or what was sent."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        known = request_id(request.headers.get(REQUEST_HEADER))
        began = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request_id=known):
            # A program's token names its person later than a session does.
            asking = limits.asking.set(lambda: request.user.pk if hasattr(request, "user") else None)
            try:
                response = self.get_response(request)
            finally:
                limits.asking.reset(asking)
            fields = {
                "method": request.method,
                "route": request.resolver_match.route if request.resolver_match else "",
                "status": response.status_code,
                "milliseconds": round(1000 * (time.perf_counter() - began), 1),
            }
            logger.info("request", extra=fields)
        response.headers[REQUEST_HEADER] = known
        return response


class ProblemMiddleware(Middleware):
    """Answer programs in their own form whatever refuses them: a wrong method, an unknown route, a fault of ours."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        is_documented = (
            response.status_code < HTTPStatus.BAD_REQUEST or response.headers.get("Content-Type") == MEDIA_TYPE
        )
        if is_documented or not request.path.startswith(API_PATH):
            return response
        status = response.status_code
        detail = MEANINGS.get(status) or HTTPStatus(status).phrase
        problem = problem_response(status, detail)
        for name in PROBLEM_HEADERS & set(response.headers):
            problem.headers[name] = response.headers[name]
        return problem


class TimeZoneMiddleware(Middleware):
    """Write times as the viewer's clock shows them: the page's script, or the person, says in a cookie which zone."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        name = request.COOKIES.get(settings.ZONE_COOKIE_NAME, "")
        with timezone.override(_zone(name)):
            return self.get_response(request)


@lru_cache(maxsize=1024)
def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    if not ZONE_NAME.fullmatch(name):
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


class RefusalMiddleware(Middleware):
    """Show a refusal of the lower layers, or of a method, as a page that says what was refused and why."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # Whoever reloads the address of a form sees what happened, instead of the browser's own error.
        opened = request.method == "GET" and response.status_code == HTTPStatus.METHOD_NOT_ALLOWED
        if not opened or request.path.startswith(API_PATH):
            return response
        page = render(request, "405.html", status=response.status_code)
        page.headers["Allow"] = response.headers["Allow"]
        return page

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer 402 for a spent budget and 409 for any other refusal; anything else is a fault of ours."""
        if isinstance(error, PrivacyError | AnnotationError | LearnerError):
            status = 402 if isinstance(error, BudgetExceeded) else getattr(error, "status", 409)
            response = render(request, "refused.html", {"reason": localized(str(error)) or "-"}, status=status)
            if (seconds := getattr(error, "retry_after_seconds", None)) is not None:
                response.headers["Retry-After"] = str(seconds)
            return response
        return None


METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
# Answers are about somebody's data unless a view says otherwise; static files are served before this.
CACHING = "no-store"


class TransportMiddleware(Middleware):
    """Refuse what a client should never send, and tell caches and browsers to keep nothing."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._refusal(request) or self.get_response(request)
        response.headers.setdefault("Cache-Control", CACHING)
        return response

    def _refusal(self, request: HttpRequest) -> HttpResponse | None:
        if request.method not in METHODS:
            return HttpResponseNotAllowed(METHODS)
        if settings.SECURE_SSL_REDIRECT and request.path.startswith(API_PATH) and not request.is_secure():
            # A program that was sent on silently would go on sending its token in the clear.
            return problem_response(403, "Send programs' requests by https: this one came without TLS.")
        return None
