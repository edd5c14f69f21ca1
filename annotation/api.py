"""REST routes of projects."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query

from annotation import access, selectors
from annotation.work.rest import Page, ProjectOut, page_of, project_for, require_scope
from annotation.work.rest import router as router
from annotation.work.services.tokens import Scope


@router.pages("projects", response=list[ProjectOut], summary="The caller's projects")
def list_projects(request: HttpRequest, response: HttpResponse, page: Query[Page], closed: bool = False) -> Any:
    require_scope(request, Scope.PROJECTS_READ)
    found = selectors.projects_of(request.user).order_by("slug")
    if not closed:
        found = found.exclude(state__in=access.CLOSED)
    return page_of(found, page, request=request, response=response)


@router.get("projects/{slug:slug}", response=ProjectOut, summary="One project")
def get_project(request: HttpRequest, slug: str) -> Any:
    return project_for(request, slug, Scope.PROJECTS_READ)
