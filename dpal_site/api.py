"""The REST interface: one API object, its routers, and every error as an RFC 9457 problem document."""

from collections.abc import Sequence
from copy import deepcopy
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from annotation.errors import AnnotationError, FewWouldPass, InvalidRecords
from annotation.work.rest import BearerToken, as_code, problem_reference
from dpal_site import openapi, problems
from dpal_site.problems import problem_response
from learner.errors import LearnerError
from privacy.errors import BudgetExceeded, PrivacyError

# Modules with routes, in the order of the description.
ROUTES = (
    "annotation.api",
    "annotation.data.api",
    "annotation.questions.api",
    "annotation.review.api",
    "annotation.projects.api",
    "annotation.projects.drafts_api",
    "annotation.budget.api",
    "annotation.budget.limits_api",
    "annotation.people.api",
    "annotation.gates.api",
    "learner.api",
    "learner.releases.channel_api",
    "learner.releases.api",
    "learner.shares.api",
    "learner.rounds.closing_api",
    "learner.rounds.going_on_api",
    "learner.dashboard.work_api",
    "learner.dashboard.tables_api",
    "learner.rounds.forgetting_api",
    "learner.dashboard.guidance_api",
    "learner.simulation.api",
    "dpal_site.operations.api",
)


class DescribedAPI(NinjaAPI):
    """An API whose description holds every answer of every route, refusals included."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        schema["components"]["schemas"]["Problem"] = problems.SCHEMA
        schema["components"]["responses"] = problems.problem_components()
        schemas = schema["components"]["schemas"]
        schemas |= openapi.preset_schemas()
        schemas["ProjectIn"]["oneOf"] = openapi.by_preset()
        schema["tags"] = openapi.described_tags(TAGS)
        for path, methods in schema["paths"].items():
            for method, operation in methods.items():
                # Routes share what they declare; here each gets its own.
                described = methods[method] = deepcopy(operation)
                responses = described["responses"]
                for status in _common_refusals(path, described):
                    responses.setdefault(status, problem_reference(status))
                openapi.add_example(path, method, described, schemas)
        return schema


def _field(place: Sequence[Any]) -> Sequence[Any]:
    """Return the path of a field as it is sent, without the part of the request and the name of our parameter."""
    return place[2:] if place[0] in ("body", "form", "query") and len(place) > 2 else place[1:] or place


def _common_refusals(path: str, operation: dict[str, Any]) -> list[int]:
    parameters = operation["parameters"]
    found = [401, 403, 429, 503]
    if "{" in path:
        found.append(404)
    if "requestBody" in operation:
        found.append(400)
    # A name in the path is any text, and one that fits nothing is simply not there.
    if "requestBody" in operation or any(one["schema"] != {"type": "string"} for one in map(_bare, parameters)):
        found.append(422)
    return found


def _bare(parameter: dict[str, Any]) -> dict[str, Any]:
    return {"schema": {name: value for name, value in parameter["schema"].items() if name != "title"}}


api = DescribedAPI(
    title="DPAL",
    version="1",
    description="Upload private pools, label, read the privacy ledger, download released models.",
    auth=BearerToken(),
    urls_namespace="api",
)
# Each add-on that has routes has them in its `api`.
ADDON_ROUTES = tuple(f"addons.{name}.api" for name in settings.ADDONS if find_spec(f"addons.{name}.api"))
TAGS = {module: openapi.tag_of(module) for module in (*ROUTES, *ADDON_ROUTES)}
for module, tag in TAGS.items():
    api.add_router("", f"{module}.router", tags=[tag])


@api.exception_handler(ValidationError)
def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Name every field and rule, but never echo what was sent."""
    errors = [{"field": ".".join(map(str, _field(item["loc"]))), "rule": item["msg"]} for item in error.errors]
    return problem_response(422, "The request does not fit its description.", errors=errors)


@api.exception_handler(AuthenticationError)
def unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    """Say how to authenticate."""
    response = problem_response(401, "Send a valid token as 'Authorization: Bearer <token>'.")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


@api.exception_handler(Http404)
def absent(request: HttpRequest, error: Http404) -> HttpResponse:
    """Same answer for what is not there and for what the caller may not know about."""
    return problem_response(404, "There is no such thing, or you have no part in it.")


@api.exception_handler(PermissionDenied)
def forbidden(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
    """Name what is missing."""
    return problem_response(403, str(error) or "Your role does not allow this.")


@api.exception_handler(HttpError)
def other(request: HttpRequest, error: HttpError) -> HttpResponse:
    """Pass a deliberate HTTP error on in the common form."""
    return problem_response(error.status_code, str(error))


@api.exception_handler(PrivacyError)
@api.exception_handler(AnnotationError)
@api.exception_handler(LearnerError)
def refused(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer 402 for a spent budget; other refusals carry their own status."""
    status = 402 if isinstance(error, BudgetExceeded) else getattr(error, "status", 409)
    extra = {}
    if isinstance(error, InvalidRecords):
        extra["errors"] = [{**fault, "rule_as_code": as_code(str(fault["rule"]))} for fault in error.errors]
    if isinstance(error, FewWouldPass):
        extra["errors"] = [{"field": error.field, "rule": str(error)}]
    response = problem_response(status, str(error), **extra)
    if (seconds := getattr(error, "retry_after_seconds", None)) is not None:
        response.headers["Retry-After"] = str(seconds)
    return response


@api.exception_handler(DataError)
def unstorable(request: HttpRequest, error: DataError) -> HttpResponse:
    """Refuse a character or a number that no column of the database can hold."""
    return problem_response(422, "The request holds a character or a number that cannot be stored.")
