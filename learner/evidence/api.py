"""REST routes about releases as a whole: the evidence that their promise holds, and an evaluator's questions."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import override
from ninja import Field, Router, Schema

from annotation.work.rest import Moment, require_scope, responses
from annotation.work.services.tokens import Scope
from learner.access import project_of
from learner.evidence.facts import facts_of
from learner.evidence.report import evidence_of
from learner.evidence.sp800_226 import answered
from learner.pools import selectors

router = Router()
MARKDOWN = "text/markdown; charset=utf-8"
DOCUMENT = {200: {"description": "The document", "content": {"text/markdown": {}}}}


class EvidenceRunOut(Schema):
    """When a command ran, and on which sources."""

    command: str
    code: str = Field(description="Version of the program; `code` of the whole answer is the site's own.")
    began_at: Moment
    ended_at: Moment


class AuditedFileOut(Schema):
    """A file of audits: what it says of itself, its false-alarm rate with it, and how its tests ended."""

    file: str
    about: str
    passed: int
    failed: int
    skipped: int


class CanaryRunOut(Schema):
    """Canaries sent through an estimator: the highest lower bound beside the charge, and how often half the noise was
    found.
    """

    name: str
    charged: float | None
    bound: float | None
    trials: int = Field(description="Fits on each side of one canary.")
    sent: int
    twins: int = Field(description="Canaries sent through a twin with half the noise.")
    found: int = Field(description="Those of them that were found above the charge.")


class AuditsOut(Schema):
    """Statistical audits of every mechanism, with so many times the trials of the ordinary tests."""

    run: EvidenceRunOut
    trials: int
    files: list[AuditedFileOut]
    canaries: list[CanaryRunOut]


class FaultKindOut(Schema):
    """Faults of one kind: on the list, planted, and noticed by every test named for them."""

    kind: str
    listed: int
    planted: int
    noticed: int


class FaultsOut(Schema):
    """Faults planted in a copy of the program."""

    run: EvidenceRunOut
    kinds: list[FaultKindOut]


class AskedOut(Schema):
    """A version and the canary sent before it was offered; null where none was sent, or nobody stored which."""

    version: int
    released_at: Moment | None
    checks: dict[str, str]
    code: str
    estimator: str
    asked_at: Moment | None
    trials: int | None
    charged: float | None
    bound: float | None


class EvidenceOut(Schema):
    """What shows that a project's promise holds; `audits` and `faults` are null where nobody ran them on this site."""

    code: str
    readable: bool
    audits: AuditsOut | None
    faults: FaultsOut | None
    releases: list[AskedOut]


@router.get("projects/{slug:slug}/evidence", response=EvidenceOut, summary="What shows that the promise holds")
def get_evidence(request: HttpRequest, slug: str) -> Any:
    require_scope(request, Scope.MODELS_READ)
    project = get_object_or_404(selectors.projects_with_models(request.user), slug=slug)
    sheet = evidence_of(project)
    return {
        "code": sheet.code,
        "readable": sheet.readable,
        "audits": sheet.found.audits,
        "faults": sheet.found.faults,
        "releases": sheet.asked,
    }


@router.get(
    "projects/{slug:slug}/evaluation",
    summary="The questions of NIST SP 800-226 with the project's answers, as Markdown",
    openapi_extra=responses(responses=DOCUMENT),
)
def get_evaluation(request: HttpRequest, slug: str) -> HttpResponse:
    require_scope(request, Scope.MODELS_READ)
    with override("en"):
        document = answered(facts_of(project_of(request, slug)))
    return HttpResponse(document, content_type=MARKDOWN)
