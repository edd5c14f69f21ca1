"""REST routes of every answer as a file: sent as it stands, or written by a worker first."""

from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import Field, Schema

from annotation.exports.downloads import export_response, labels_response
from annotation.exports.services import kept_files
from annotation.exports.services.label_files import FILE_KINDS, ExportFormat
from annotation.models import Role
from annotation.models.exports import Export
from annotation.people.identity import person_of
from annotation.work.ranges import CONDITIONS, file_answers
from annotation.work.rest import JobOut, RoomRouter, project_for, responses
from annotation.work.services.tokens import Scope

router = RoomRouter()

LABEL_FILES: dict[str, Any] = {kind.media_type: {} for kind in FILE_KINDS.values()}


class ExportIn(Schema):
    """What to write to a file."""

    what: Literal["labels"] = "labels"
    format: ExportFormat = ExportFormat.JSON_LINES
    history: bool = Field(False, description="Whether answers that were changed are in it, too.")


@router.get(
    "projects/{slug:slug}/labels",
    summary="Every answer as a file, streamed",
    openapi_extra=responses(
        responses={
            200: {
                "description": "The file",
                "headers": {"Content-Disposition": {"required": True, "schema": {"type": "string"}}},
                "content": LABEL_FILES,
            }
        }
    ),
)
def export_labels(
    request: HttpRequest,
    slug: str,
    format: ExportFormat = ExportFormat.JSON_LINES,  # noqa: A002
    history: bool = False,
) -> HttpResponseBase:
    return labels_response(project_for(request, slug, Scope.LABELS_READ, Role.MANAGER), format, history=history)


@router.write(
    "projects/{slug:slug}/exports",
    response={202: JobOut},
    summary="Have every answer written to a file; the job says where it is",
    problems=(),
)
def start_export(request: HttpRequest, slug: str, body: ExportIn) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    export = kept_files.start_export(
        project=project, owner=person_of(request), format=body.format, history=body.history
    )
    return export.job


@router.get(
    "projects/{slug:slug}/exports/{job_id}/file",
    summary="The file that a job wrote, whole or in part",
    openapi_extra=responses(416, parameters=CONDITIONS, responses=file_answers(LABEL_FILES)),
)
def get_export(request: HttpRequest, slug: str, job_id: UUID) -> HttpResponseBase:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    found = Export.objects.select_related("project")
    return export_response(request, get_object_or_404(found, project=project, job=job_id))
