"""REST routes of a project itself: its words, whether it is paused, and how long it keeps what it holds."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Schema

from annotation.data.retention_views import LONGEST_DAYS
from annotation.data.services import retention
from annotation.models import Role
from annotation.models.retention import FEWEST_ACTION_DAYS, FEWEST_DAYS
from annotation.people.identity import person_of
from annotation.projects.forms.settings import SettingsForm
from annotation.projects.services import opening
from annotation.work.reads import Answer, Reads
from annotation.work.rest import ProjectOut, RoomRouter, checked, project_for
from annotation.work.services.tokens import Scope

router = RoomRouter()


class DescriptionOut(Answer, reads=Reads.MANAGED):
    """What a project is called, what it asks, and how long somebody may take for one question."""

    name: str
    question: str
    lease_seconds: int


class DescriptionIn(Schema):
    """The same, as far as it changes: what is left out stays."""

    name: str | None = Field(None, max_length=120)
    question: str | None = Field(None, max_length=200)
    lease_seconds: int | None = None


class StateIn(Schema):
    """Whether questions are handed out and rounds begin."""

    state: Literal["active", "paused"]


class KeptOut(Answer, reads=Reads.MANAGED):
    """One kind of thing: how long it is kept, how many of it go within the hour, and when the next would."""

    kind: str
    days: int | None = Field(description="Null where it is kept until the project is deleted.")
    overdue: int = Field(alias="now")
    next_at: datetime | None = Field(alias="following")


class RetentionIn(Schema):
    """Days for each kind of thing; null keeps it until the project is deleted, what is left out stays."""

    records_days: int | None = Field(None, ge=FEWEST_DAYS, le=LONGEST_DAYS)
    answers_days: int | None = Field(None, ge=FEWEST_DAYS, le=LONGEST_DAYS)
    comments_days: int | None = Field(None, ge=FEWEST_DAYS, le=LONGEST_DAYS)
    uploads_days: int | None = Field(None, ge=FEWEST_DAYS, le=LONGEST_DAYS)
    actions_days: int | None = Field(None, ge=FEWEST_ACTION_DAYS, le=LONGEST_DAYS)


@router.get("projects/{slug:slug}/description", response=DescriptionOut, summary="What a project is called and asks")
def get_description(request: HttpRequest, slug: str) -> Any:
    return project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)


@router.write(
    "projects/{slug:slug}/description",
    response=DescriptionOut,
    summary="Change what touches no guarantee: name, question, time for one",
    method="PATCH",
)
def change_description(request: HttpRequest, slug: str, body: DescriptionIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    standing = {name: getattr(project, name) for name in SettingsForm.base_fields}
    form = SettingsForm(standing | body.dict(exclude_none=True), project=project)
    return opening.set_description(project=project, actor=person_of(request), **checked(form))


@router.write("projects/{slug:slug}/state", response=ProjectOut, summary="Pause a project, or let it go on")
def set_project_state(request: HttpRequest, slug: str, body: StateIn) -> Any:
    change = opening.pause_project if body.state == "paused" else opening.resume_project
    return change(project=project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER))


@router.get(
    "projects/{slug:slug}/retention",
    response=list[KeptOut],
    summary="How long things are kept, and what goes when",
)
def list_retention(request: HttpRequest, slug: str) -> Any:
    return retention.what_is_due(project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER))


@router.write(
    "projects/{slug:slug}/retention",
    response=list[KeptOut],
    summary="Change how long things are kept; what is over its period goes within the hour",
    method="PATCH",
)
def change_retention(request: HttpRequest, slug: str, body: RetentionIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    actor = person_of(request).get_username()
    retention.set_retention(project=project, actor=actor, **body.dict(exclude_unset=True))
    return retention.what_is_due(project)
