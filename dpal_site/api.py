"""The REST interface: one API object, its routers, and every error as an RFC 9457 problem document."""

from copy import deepcopy
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from annotation.api import router as annotation_router
from annotation.browsing.api import router as browsing_router
from annotation.crowds.api import router as crowds_router
from annotation.data.api import router as data_router
from annotation.data.gate_api import router as dataset_gate_router
from annotation.errors import AnnotationError, InvalidRecords
from annotation.exports.api import router as exports_router
from annotation.gates.api import router as gates_router
from annotation.guidelines.api import router as guidelines_router
from annotation.guidelines.pictures_api import router as guideline_pictures_router
from annotation.people.groups_api import router as groups_router
from annotation.people.joining_api import router as joining_router
from annotation.people.mails_api import router as mails_router
from annotation.people.members_api import router as members_router
from annotation.populations.api import router as populations_router
from annotation.populations.managers_api import router as managers_router
from annotation.projects.api import router as configuration_router
from annotation.projects.beside_api import router as beside_router
from annotation.projects.kind_api import router as kind_router
from annotation.projects.state_api import router as state_router
from annotation.quality.api import router as quality_router
from annotation.questions.answering_api import router as answering_router
from annotation.questions.api import router as questions_router
from annotation.reports.api import router as reports_router
from annotation.reports.conversations_api import router as conversations_router
from annotation.rest.base import BearerToken
from annotation.rest.responses import as_code, problem_reference
from annotation.review.api import router as review_router
from annotation.statement.api import router as ledger_router
from annotation.statement.limits_api import router as limits_router
from annotation.statement.log_api import router as log_router
from dpal_site import problems
from dpal_site.operations_api import router as operations_router
from dpal_site.problems import problem_response
from learner.api import router as learner_router
from learner.channels.api import router as channels_router
from learner.closing.api import router as lifecycle_router
from learner.dashboard.tables_api import router as tables_router
from learner.dashboard.work_api import router as work_router
from learner.errors import LearnerError
from learner.evidence.api import router as evidence_router
from learner.forgetting.api import router as forgetting_router
from learner.guidance.api import router as next_step_router
from learner.planning.api import router as planning_router
from learner.releases.api import router as versions_router
from learner.rounds.going_on_api import router as going_on_router
from learner.webhooks.api import router as webhooks_router
from privacy.errors import BudgetExceeded, PrivacyError

# The module an operation's id names, where its function has moved since: programs made from the description go on.
DESCRIBED_IN = {
    "annotation.browsing.api": "annotation.questions.browsing_api",
    "annotation.exports.api": "annotation.questions.api",
    "annotation.guidelines.api": "annotation.questions.guidelines_api",
    "annotation.guidelines.pictures_api": "annotation.questions.guideline_pictures_api",
    "annotation.quality.api": "annotation.questions.quality_api",
    "annotation.reports.api": "annotation.questions.reports_api",
    "annotation.reports.conversations_api": "annotation.questions.conversations_api",
    "annotation.review.api": "annotation.questions.review_api",
    "learner.channels.api": "learner.releases.api",
    "learner.closing.api": "learner.releases.lifecycle_api",
    "learner.evidence.api": "learner.releases.evidence_api",
    "learner.guidance.api": "learner.next_step_api",
    "learner.webhooks.api": "learner.releases.webhooks_api",
}


class DescribedAPI(NinjaAPI):
    """An API whose description holds every answer of every route, refusals included."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return what programs made from the description call an operation by."""
        function = operation.view_func
        module = DESCRIBED_IN.get(function.__module__, function.__module__)
        return f"{module}.{function.__name__}".replace(".", "_")

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        """Add to each route what any route may answer, besides what it declares itself."""
        schema = super().get_openapi_schema(**options)
        schema["components"]["schemas"]["Problem"] = problems.SCHEMA
        schema["components"]["responses"] = problems.problem_components()
        for path, methods in schema["paths"].items():
            for method, operation in methods.items():
                # Routes share what they declare; here each gets its own.
                described = methods[method] = deepcopy(operation)
                responses = described["responses"]
                for status in _common_refusals(path, described):
                    responses.setdefault(status, problem_reference(status))
        return schema


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
api.add_router("", annotation_router)
api.add_router("", data_router)
api.add_router("", dataset_gate_router)
api.add_router("", questions_router)
api.add_router("", exports_router)
api.add_router("", guideline_pictures_router)
api.add_router("", browsing_router)
api.add_router("", conversations_router)
api.add_router("", review_router)
api.add_router("", configuration_router)
api.add_router("", state_router)
api.add_router("", kind_router)
api.add_router("", beside_router)
api.add_router("", ledger_router)
api.add_router("", limits_router)
api.add_router("", log_router)
api.add_router("", populations_router)
api.add_router("", managers_router)
api.add_router("", members_router)
api.add_router("", joining_router)
api.add_router("", groups_router)
api.add_router("", mails_router)
api.add_router("", gates_router)
api.add_router("", quality_router)
api.add_router("", guidelines_router)
api.add_router("", answering_router)
api.add_router("", reports_router)
api.add_router("", crowds_router)
api.add_router("", learner_router)
api.add_router("", channels_router)
api.add_router("", versions_router)
api.add_router("", lifecycle_router)
api.add_router("", webhooks_router)
api.add_router("", going_on_router)
api.add_router("", work_router)
api.add_router("", tables_router)
api.add_router("", forgetting_router)
api.add_router("", next_step_router)
api.add_router("", planning_router)
api.add_router("", evidence_router)
api.add_router("", operations_router)


@api.exception_handler(ValidationError)
def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Name every field and rule, but never echo what was sent."""
    errors = [{"field": ".".join(str(part) for part in item["loc"]), "rule": item["msg"]} for item in error.errors]
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
    response = problem_response(status, str(error), **extra)
    if (seconds := getattr(error, "retry_after_seconds", None)) is not None:
        response.headers["Retry-After"] = str(seconds)
    return response


@api.exception_handler(DataError)
def unstorable(request: HttpRequest, error: DataError) -> HttpResponse:
    """Refuse a character or a number that no column of the database can hold."""
    return problem_response(422, "The request holds a character or a number that cannot be stored.")
