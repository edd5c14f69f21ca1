"""REST routes of channels: which version each is, moving one, and rolling one back."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Schema

from annotation.models import Role
from annotation.people.identity import person_of
from annotation.work.reads import Answer, Reads
from annotation.work.rest import Moment, Page, RoomRouter, page_of, project_for
from annotation.work.services.tokens import Scope
from learner.pools import selectors
from learner.releases.api import KeptReason, ReasonIn, existing_release, readable_project
from learner.releases.services import channels

router = RoomRouter()


class ChannelOut(Answer, reads=Reads.LEDGER):
    """Version of a channel, since when and why; `rolled_back` says that it went back to an earlier one."""

    channel: str
    version: int = Field(validation_alias="release.version")
    reason: str
    rolled_back: bool
    moved_at: Moment = Field(validation_alias="created_at")


class MoveIn(Schema):
    """A version to move a channel to."""

    version: int = Field(ge=1, le=10**9)
    reason: KeptReason


@router.pages("projects/{slug:slug}/channels", response=list[ChannelOut], summary="Which version each channel is")
def list_channels(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    found = selectors.channels_of(readable_project(request, slug))
    return page_of(found, page, request=request, response=response)


@router.write(
    "projects/{slug:slug}/channels/{channel}", response=ChannelOut, summary="Move a channel to a version, with a reason"
)
def move_channel(request: HttpRequest, slug: str, channel: str, body: MoveIn) -> Any:
    release = existing_release(project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER), str(body.version))
    actor = person_of(request)
    return channels.move_channel(release=release, channel=channel, reason=body.reason, actor=actor)


@router.write(
    "projects/{slug:slug}/channels/{channel}/rollback",
    response=ChannelOut,
    summary="Move a channel back to the version it was before, with a reason",
)
def roll_back_channel(request: HttpRequest, slug: str, channel: str, body: ReasonIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    actor = person_of(request)
    return channels.roll_back_channel(project=project, channel=channel, reason=body.reason, actor=actor)
