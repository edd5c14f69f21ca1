"""Access of a request to a project, and refusals of closed ones."""

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from annotation import selectors
from annotation.errors import ProjectClosed
from annotation.models import Project, ProjectState, Role

CLOSED = (ProjectState.ARCHIVED, ProjectState.DELETED)
REVIEWERS = (Role.MANAGER, Role.REVIEWER)
READING = ("GET", "HEAD", "OPTIONS")


def managed_project(request: HttpRequest, slug: str, *, closed_too: bool = False) -> Project:
    """Return the project if the person manages it; else 404. Closed ones are found with `closed_too` alone."""
    project = get_object_or_404(selectors.projects_of(request.user, roles=(Role.MANAGER,)), slug=slug)
    if request.method not in READING and not closed_too:
        refuse_if_closed(project)
    project.viewer_manages = True
    return project


def may_open(request: HttpRequest) -> bool:
    return request.user.has_perm("annotation.add_project")


def refuse_if_closed(project: Project) -> None:
    if project.state == ProjectState.DELETED:
        raise ProjectClosed("This project is deleted and read-only.")
    if project.state == ProjectState.ARCHIVED:
        raise ProjectClosed("This project is archived and read-only. A manager can restore it.")
