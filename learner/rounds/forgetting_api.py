"""REST routes for forgetting a contributor; the name is sent in the body and comes back in no answer."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Schema

from annotation.data.services.forgetting import request_forgetting
from annotation.models import Project, Role
from annotation.models.retention import Forgetting
from annotation.people.identity import person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import Page, RoomRouter, member_project, page_of, require_scope, responses
from annotation.work.services.tokens import Scope
from learner.rounds.services.forgetting import preview_forgetting

router = RoomRouter()


class ContributorIn(Schema):
    """A contributor as the upload's column names them."""

    contributor: str = Field(min_length=1, max_length=500)


class TracesOut(Answer, reads=Reads.MANAGED):
    """Preview of erasing: records, releases that used them, and what the guarantee says about all of it together."""

    records: int
    uploads: list[int]
    open_questions: int
    answers: int
    passed_gate: bool
    registered_tables: int
    releases: list[int]
    epsilon: float
    delta: float


class ForgettingOut(Answer, reads=Reads.MANAGED):
    """A request to forget somebody; `reference` is a keyed digest in the place of the name."""

    id: int
    reference: str
    actor: str
    job: UUID = Field(validation_alias="job_id")
    state: str = Field(validation_alias="job.state")
    created_at: datetime
    finished_at: datetime | None


def _project(request: HttpRequest, slug: str) -> Project:
    require_scope(request, Scope.DATASETS_WRITE)
    return member_project(request, slug, Role.MANAGER)


@router.post(
    "projects/{slug:slug}/forgettings/preview",
    response=TracesOut,
    summary="What forgetting a contributor would erase",
    openapi_extra=responses(409),
)
def preview_forgetting_of(request: HttpRequest, slug: str, body: ContributorIn) -> Any:
    preview = preview_forgetting(project=_project(request, slug), name=body.contributor)
    epsilon, delta = preview.promise.together
    return {
        "records": preview.traces.records,
        "uploads": [upload.pk for upload in preview.traces.uploads],
        "open_questions": preview.traces.waiting_questions,
        "answers": preview.traces.answers,
        "passed_gate": preview.traces.passed_gate,
        "registered_tables": preview.traces.registered_tables,
        "releases": [release.version for release in preview.releases],
        "epsilon": epsilon,
        "delta": delta,
    }


@router.write(
    "projects/{slug:slug}/forgettings",
    response={202: ForgettingOut},
    summary="Forget a contributor; a job erases what there is",
)
def forget_contributor(request: HttpRequest, slug: str, body: ContributorIn) -> Any:
    project = _project(request, slug)
    actor = person_of(request).get_username()
    return request_forgetting(project=project, name=body.contributor, actor=actor)


@router.pages(
    "projects/{slug:slug}/forgettings", response=list[ForgettingOut], summary="Requests to forget, newest first"
)
def list_forgettings(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    found = Forgetting.objects.filter(project=_project(request, slug)).select_related("job").order_by("-pk")
    return page_of(found, page, request=request, response=response)
