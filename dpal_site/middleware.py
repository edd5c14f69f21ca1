"""Response headers every page carries, and refusals turned into pages."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from annotation.errors import AnnotationError
from learner.errors import LearnerError
from privacy.errors import BudgetExceeded, PrivacyError

GetResponse = Callable[[HttpRequest], HttpResponse]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class ContentSecurityPolicyMiddleware:
    """Allow only what the site itself serves: no inline script or style, no other host."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
        return response


class RefusalMiddleware:
    """Show a refusal of the lower layers as a page that says what was refused and why."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer 402 for a spent budget and 409 for any other refusal; anything else is a fault of ours."""
        if isinstance(error, PrivacyError | AnnotationError | LearnerError):
            status = 402 if isinstance(error, BudgetExceeded) else getattr(error, "status", 409)
            return render(request, "refused.html", {"reason": str(error)}, status=status)
        return None
