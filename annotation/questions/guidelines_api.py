"""REST routes of guidelines and their pictures."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Field, File, Form, Schema, UploadedFile

from annotation.errors import InvalidChoice
from annotation.models import Role
from annotation.models.questions import GuidelinePicture
from annotation.people.identity import person_of
from annotation.questions.class_list import listed_classes
from annotation.questions.forms import MAX_EXAMPLES
from annotation.questions.guidelines import NAME_LENGTH, snippet_of
from annotation.questions.services import guidelines
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, project_for, responses
from annotation.work.services.tokens import Scope
from privacy.wording import as_message

router = RoomRouter()
LONGEST_EXAMPLE, LONGEST_GUIDELINES = 2000, 200_000


class GuidelineExampleIn(Schema):
    """A made-up text, never one from the pool, with the position of its class and why it belongs there.

    On the page an example is one line, whose parts are set apart by bars.
    """

    text: str = Field(min_length=1, max_length=LONGEST_EXAMPLE, pattern=r"^[^|\n\r]+$")
    choice: int = Field(ge=0)
    reason: str = Field("", max_length=LONGEST_EXAMPLE, pattern=r"^[^\n\r]*$")


class GuidelinesIn(Schema):
    """What annotators are told, as Markdown, with made-up examples."""

    text: str = Field(max_length=LONGEST_GUIDELINES)
    examples: list[GuidelineExampleIn] = Field([], max_length=MAX_EXAMPLES)


class GuidelineExampleOut(Answer, reads=Reads.GUIDELINES):
    """A made-up text with the position of its class and why it belongs there."""

    text: str
    choice: int
    reason: str


class ClassMeaningOut(Answer, reads=Reads.GUIDELINES):
    """What managers say of a class, and examples of it."""

    name: str
    words: list[str]
    examples: list[str]


class GuidelinesOut(Answer, reads=Reads.GUIDELINES):
    """The version that stands, and the classes of which managers say what they mean."""

    version: int
    text: str
    examples: list[GuidelineExampleOut]
    classes: list[ClassMeaningOut]


class GuidelinesSavedOut(Answer, reads=Reads.MANAGED):
    """The number of the version that stands now; the same words again are the version that stood."""

    version: int


@router.get(
    "projects/{slug:slug}/guidelines", response=GuidelinesOut, summary="What annotators are told, as they read it"
)
def get_guidelines(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER, Role.ANNOTATOR, Role.REVIEWER)
    standing = guidelines.current_guidelines(project)
    described = listed_classes(tuple(project.classes), tuple(project.settings.get("class_descriptions") or ()))
    return {
        "version": standing.version,
        "text": standing.text,
        "examples": standing.examples,
        "classes": [one for one in described if one.description_lines],
    }


@router.write(
    "projects/{slug:slug}/guidelines",
    response=GuidelinesSavedOut,
    summary="Write a version of the guidelines; annotators are told of it once",
)
def write_guidelines(request: HttpRequest, slug: str, body: GuidelinesIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    possible = len(project.classes)
    if any(one.choice >= possible for one in body.examples):
        raise InvalidChoice(as_message("There are {possible} answers to choose from.", possible=possible))
    examples = [one.dict() for one in body.examples]
    saved = guidelines.save_guidelines(project=project, text=body.text, examples=examples, author=person_of(request))
    return {"version": saved.version}


@router.write("projects/{slug:slug}/guidelines/read", summary="Note that the caller knows the version that stands")
def read_guidelines(request: HttpRequest, slug: str) -> None:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    guidelines.mark_guidelines_seen(project=project, user=person_of(request))


class GuidelinePictureIn(Schema):
    """What stands for a picture where it cannot be seen."""

    description: str = Field(min_length=1, max_length=guidelines.LONGEST_DESCRIPTION)


class GuidelinePictureOut(Answer, reads=Reads.MANAGED):
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
    return guidelines.guideline_pictures(project)


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
    data = file.read(guidelines.LARGEST_FILE + 1)
    return guidelines.add_guideline_picture(
        project=project, data=data, description=form.description, by=person_of(request)
    )


@router.get(
    "projects/{slug:slug}/guidelines/pictures/{digest}",
    summary="A picture of the guidelines, by its digest or by the name that shows it, for who is asked or reviews",
    openapi_extra=responses(responses={200: {"description": "The picture", "content": {"image/webp": {}}}}),
)
def get_guideline_picture(request: HttpRequest, slug: str, digest: str) -> HttpResponse:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER, Role.ANNOTATOR, Role.REVIEWER)
    kept = guidelines.guideline_pictures(project)
    named = {"digest__startswith": digest} if len(digest) == NAME_LENGTH else {"digest": digest}
    return HttpResponse(bytes(get_object_or_404(kept, **named).content), content_type="image/webp")


@router.remove(
    "projects/{slug:slug}/guidelines/pictures/{digest}",
    summary="Delete a picture that the guidelines do not show",
    problems=(),
)
def delete_guideline_picture(request: HttpRequest, slug: str, digest: str) -> None:
    kept = guidelines.guideline_pictures(project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER))
    guidelines.delete_guideline_picture(picture=get_object_or_404(kept, digest=digest))
