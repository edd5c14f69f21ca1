"""Rules of transport: TLS, methods, no caching on the way."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from dpal_site.around import Middleware
from dpal_site.problems import problem_response

API_PATH = "/api/"
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
