"""The REST interface: one API object, its routers, and every error as an RFC 9457 problem document."""

from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from annotation.api import BearerToken
from annotation.api import router as annotation_router
from annotation.errors import AnnotationError, InvalidRecords, TooOften
from learner.api import router as learner_router
from learner.errors import LearnerError
from privacy.errors import BudgetExceeded, PrivacyError

api = NinjaAPI(
    title="DPAL",
    version="1",
    description="Upload private pools, label, read the privacy ledger, download released models.",
    auth=BearerToken(),
    urls_namespace="api",
)
api.add_router("", annotation_router)
api.add_router("", learner_router)


def _problem(request: HttpRequest, status: int, detail: str, **extra: Any) -> HttpResponse:
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail, **extra}
    response = api.create_response(request, body, status=status)
    response.headers["Content-Type"] = "application/problem+json"
    return response


@api.exception_handler(ValidationError)
def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Name every field and rule, but never echo what was sent."""
    errors = [{"field": ".".join(str(part) for part in item["loc"]), "rule": item["msg"]} for item in error.errors]
    return _problem(request, 422, "The request does not fit its description.", errors=errors)


@api.exception_handler(AuthenticationError)
def unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    """Say how to authenticate."""
    response = _problem(request, 401, "Send a valid token as 'Authorization: Bearer <token>'.")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


@api.exception_handler(Http404)
def absent(request: HttpRequest, error: Http404) -> HttpResponse:
    """Same answer for what is not there and for what the caller may not know about."""
    return _problem(request, 404, "There is no such thing, or you have no part in it.")


@api.exception_handler(PermissionDenied)
def forbidden(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
    """Name what is missing."""
    return _problem(request, 403, str(error) or "Your role does not allow this.")


@api.exception_handler(HttpError)
def other(request: HttpRequest, error: HttpError) -> HttpResponse:
    """Pass a deliberate HTTP error on in the common form."""
    return _problem(request, error.status_code, str(error))


@api.exception_handler(PrivacyError)
@api.exception_handler(AnnotationError)
@api.exception_handler(LearnerError)
def refused(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer 402 for a spent budget; other refusals carry their own status."""
    status = 402 if isinstance(error, BudgetExceeded) else getattr(error, "status", 409)
    extra = {"errors": error.errors} if isinstance(error, InvalidRecords) else {}
    response = _problem(request, status, str(error), **extra)
    if isinstance(error, TooOften):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response
