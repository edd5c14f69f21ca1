"""REST routes of a project's end: putting it away, deleting it, and what is left."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Schema

from annotation.models import Project, Role
from annotation.models.retention import Deletion
from annotation.people.identity import person_of
from annotation.projects.services import lifecycle
from annotation.work.reads import Answer, Reads
from annotation.work.rest import ProjectOut, RoomRouter, member_project, require_scope
from annotation.work.services.tokens import Scope
from learner.rounds.services.closing import what_stays

router = RoomRouter()


class ArchivedIn(Schema):
    """Archive of a project: an archived one can only be read."""

    archived: bool


class DeletionIn(Schema):
    """Fate of the releases, and the project's short name to confirm it."""

    typed: str = Field(max_length=60, description="The project's short name, as a confirmation.")
    releases: Literal["keep", "bury"] = Field(
        "keep", description="To bury deletes their files; version, digests, guarantee and origin stay."
    )


class DeletionOut(Answer, reads=Reads.MANAGED):
    """Consequences of deleting a project; null where nobody has asked for it."""

    state: str
    entries: int
    releases: int
    actions: int
    keeps_releases: bool | None
    deleted_by: str | None
    deleted_at: datetime | None
    erasing: str | None = Field(description="State of the job that erases the rest.")
    erased_at: datetime | None


@router.write(
    "projects/{slug:slug}/archive",
    response=ProjectOut,
    summary="Put a project into the archive, or take it out, paused",
)
def set_archived(request: HttpRequest, slug: str, body: ArchivedIn) -> Any:
    require_scope(request, Scope.PROJECTS_WRITE)
    project = member_project(request, slug, Role.MANAGER)
    change = lifecycle.archive_project if body.archived else lifecycle.unarchive_project
    return change(project=project)


@router.get(
    "projects/{slug:slug}/deletion", response=DeletionOut, summary="What deleting leaves, and how far erasing is"
)
def get_deletion(request: HttpRequest, slug: str) -> Any:
    require_scope(request, Scope.PROJECTS_READ)
    return _deletion(member_project(request, slug, Role.MANAGER))


@router.write(
    "projects/{slug:slug}/deletion",
    response={202: DeletionOut},
    summary="Delete a project for good; a job erases what there is",
)
def delete_project(request: HttpRequest, slug: str, body: DeletionIn) -> Any:
    require_scope(request, Scope.PROJECTS_WRITE)
    project = member_project(request, slug, Role.MANAGER)
    lifecycle.request_deletion(
        project=project,
        typed=body.typed.strip(),
        keep_releases=body.releases == "keep",
        actor=person_of(request).get_username(),
    )
    return _deletion(Project.objects.get(pk=project.pk))


def _deletion(project: Project) -> dict[str, Any]:
    found = Deletion.objects.filter(project=project).select_related("job").first()
    return what_stays(project) | {
        "state": project.state,
        "keeps_releases": found and found.keep_releases,
        "deleted_by": found and found.actor,
        "deleted_at": found and found.created_at,
        "erasing": found and found.job.state,
        "erased_at": found and found.job.finished_at,
    }
