"""REST routes of the pictures of a project's guidelines."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Field, File, Form, Schema, UploadedFile

from annotation.guidelines.services import pictures as service
from annotation.guidelines.text import NAME_LENGTH, snippet_of
from annotation.models import Role
from annotation.models.questions import GuidelinePicture
from annotation.people.identity import person_of
from annotation.work.rest import RoomRouter, project_for, responses
from annotation.work.services.tokens import Scope

router = RoomRouter()


class GuidelinePictureIn(Schema):
    """What stands for a picture where it cannot be seen."""

    description: str = Field(min_length=1, max_length=service.LONGEST_DESCRIPTION)


class GuidelinePictureOut(Schema):
    """A picture of the guidelines, and what is written into them to show it."""

    digest: str = Field(description="SHA-256 of the picture as it is kept, in hexadecimal digits.")
    description: str
    width: int
    height: int
    markdown: str
    added_at: datetime

    @staticmethod
    def resolve_markdown(picture: GuidelinePicture) -> str:
        """Return what shows it by the beginning of its digest."""
        return snippet_of(picture.digest[:NAME_LENGTH], picture.description)


@router.get(
    "projects/{slug:slug}/guidelines/pictures", response=list[GuidelinePictureOut], summary="Pictures of the guidelines"
)
def list_guideline_pictures(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    return service.guideline_pictures(project)


@router.write(
    "projects/{slug:slug}/guidelines/pictures",
    response=GuidelinePictureOut,
    summary="Keep a picture for the guidelines, without its metadata",
    problems=(409, 503),
)
def add_guideline_picture(
    request: HttpRequest, slug: str, file: File[UploadedFile], form: Form[GuidelinePictureIn]
) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    data = file.read(service.LARGEST_FILE + 1)
    return service.add_guideline_picture(
        project=project, data=data, description=form.description, by=person_of(request)
    )


@router.get(
    "projects/{slug:slug}/guidelines/pictures/{digest}",
    summary="A picture of the guidelines, by its digest or by the name that shows it, for who is asked or reviews",
    openapi_extra=responses(responses={200: {"description": "The picture", "content": {"image/webp": {}}}}),
)
def get_guideline_picture(request: HttpRequest, slug: str, digest: str) -> HttpResponse:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER, Role.ANNOTATOR, Role.REVIEWER)
    kept = service.guideline_pictures(project)
    named = {"digest__startswith": digest} if len(digest) == NAME_LENGTH else {"digest": digest}
    return HttpResponse(bytes(get_object_or_404(kept, **named).content), content_type="image/webp")


@router.remove(
    "projects/{slug:slug}/guidelines/pictures/{digest}",
    summary="Delete a picture that the guidelines do not show",
    problems=(),
)
def delete_guideline_picture(request: HttpRequest, slug: str, digest: str) -> None:
    kept = service.guideline_pictures(project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER))
    service.delete_guideline_picture(picture=get_object_or_404(kept, digest=digest))
