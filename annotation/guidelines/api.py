"""REST routes of what annotators are told: the version that stands, and a new one."""

from typing import Any

from django.http import HttpRequest
from ninja import Field, Schema

from annotation.answers.class_list import listed_classes
from annotation.errors import InvalidChoice
from annotation.guidelines.forms import MAX_EXAMPLES
from annotation.guidelines.services import versions
from annotation.models import Role
from annotation.people.identity import person_of
from annotation.work.rest import RoomRouter, project_for
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


class GuidelineExampleOut(Schema):
    """A made-up text with the position of its class and why it belongs there."""

    text: str
    choice: int
    reason: str


class ClassMeaningOut(Schema):
    """What managers say of a class, and examples of it."""

    name: str
    words: list[str]
    examples: list[str]


class GuidelinesOut(Schema):
    """The version that stands, and the classes of which managers say what they mean."""

    version: int
    text: str
    examples: list[GuidelineExampleOut]
    classes: list[ClassMeaningOut]


class GuidelinesSavedOut(Schema):
    """The number of the version that stands now; the same words again are the version that stood."""

    version: int


@router.get(
    "projects/{slug:slug}/guidelines", response=GuidelinesOut, summary="What annotators are told, as they read it"
)
def get_guidelines(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER, Role.ANNOTATOR, Role.REVIEWER)
    standing = versions.current_guidelines(project)
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
    saved = versions.save_guidelines(project=project, text=body.text, examples=examples, author=person_of(request))
    return {"version": saved.version}


@router.write("projects/{slug:slug}/guidelines/read", summary="Note that the caller knows the version that stands")
def read_guidelines(request: HttpRequest, slug: str) -> None:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    versions.mark_guidelines_seen(project=project, user=person_of(request))
