"""REST routes of how people come to a project: invitations, and links for crowd platforms.

A link opens the project to whoever holds it, so its address is told once and kept nowhere. Answers under an
Idempotency-Key are kept for a day, so making a link takes none: sent again, it makes another.
"""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Field, Schema

from annotation.errors import InvalidConfiguration
from annotation.models import Role
from annotation.models.joining import CrowdLink, Invitation, Platform
from annotation.people.forms.joining import CrowdLinkForm, InvitationForm, filled_in
from annotation.people.identity import person_of
from annotation.people.services import crowd_links, invitations, letters
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, checked, project_for, responses, row_id
from annotation.work.services.tokens import Scope
from privacy.wording import as_message

router = RoomRouter()
NO_MAIL = as_message("This site sends no mail: give the link to whom it is for.")


class InvitationOut(Answer, reads=Reads.MANAGED):
    """A link that still lets somebody in; the link itself was told when it was made."""

    invitation: int
    role: Role
    note: str
    uses: int
    maximum_uses: int
    expires_at: datetime
    mail: str = Field(description="How far the mail with it is; empty where none goes.")


class InvitationMadeOut(InvitationOut):
    """A new invitation with its link, which is told this once."""

    link: str


class InvitationIn(Schema):
    """An invitation into a project; with an address it goes by mail, too."""

    role: Role
    maximum_uses: int = Field(1, ge=1, le=1000)
    days: int = Field(7, ge=1, le=90, description="Until it ends.")
    note: str = Field("", max_length=80, description="For managers: whom it is for.")
    address: str = Field("", max_length=254, description="Forgotten once the mail is sent; for one person.")
    language: Literal["", "en", "de"] = Field("", description="Language of the mail.")


class CrowdLinkOut(Answer, reads=Reads.MANAGED):
    """A link for a crowd platform that lets participants in; its address was told when it was made."""

    crowd_link: int
    platform: Platform
    study: str
    participants: int
    maximum_participants: int
    answers_wanted: int
    completion_code: str
    expires_at: datetime
    signed: bool = Field(description="Whether only who the platform signs for gets in.")


class CrowdLinkMadeOut(CrowdLinkOut):
    """A new link with its address for the platform, which is told this once."""

    address: str


class CrowdLinkIn(Schema):
    """A link for a platform's participants."""

    platform: Platform
    study: str = Field("", max_length=64, description="Study id or HIT id; empty lets participants of any in.")
    answers_wanted: int = Field(20, ge=1, le=10_000, description="Until the completion code is shown.")
    maximum_participants: int = Field(50, ge=1, le=100_000)
    days: int = Field(14, ge=1, le=90, description="Until it ends.")
    signed: bool = Field(False, description="Only who Prolific signs for gets in; its study must secure the address.")


@router.get(
    "projects/{slug:slug}/invitations", response=list[InvitationOut], summary="Invitations that let somebody in"
)
def list_invitations(request: HttpRequest, slug: str) -> Any:
    live = invitations.live_invitations().filter(project=project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER))
    return [_invitation(one) for one in live.select_related("letter").order_by("-pk")]


@router.post(
    "projects/{slug:slug}/invitations",
    response={201: InvitationMadeOut},
    summary="Make an invitation, and send it by mail if it names an address",
    openapi_extra=responses(409),
)
def make_invitation(request: HttpRequest, slug: str, body: InvitationIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    leaves = letters.leaves_the_site()
    if body.address and not leaves:
        raise InvalidConfiguration(NO_MAIL)
    form = InvitationForm(body.dict(), by_mail=leaves)
    checked(form)
    made, secret = letters.invite(owner=person_of(request), project=project, **form.values())
    return _invitation(made) | {"link": request.build_absolute_uri(reverse("annotation:join", args=[secret]))}


@router.remove("projects/{slug:slug}/invitations/{invitation_id}", summary="End an invitation; who came by it stays")
def revoke_invitation(request: HttpRequest, slug: str, invitation_id: str) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    invitations.revoke_invitation(invitation=get_object_or_404(project.invitations, pk=row_id(invitation_id)))


@router.get(
    "projects/{slug:slug}/crowd-links", response=list[CrowdLinkOut], summary="Links for crowd platforms that are open"
)
def list_crowd_links(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    return [_crowd_link(one) for one in project.crowd_links.filter(revoked_at=None).order_by("-pk")]


@router.post(
    "projects/{slug:slug}/crowd-links",
    response={201: CrowdLinkMadeOut},
    summary="Make a link for a crowd platform",
    openapi_extra=responses(409),
)
def make_crowd_link(request: HttpRequest, slug: str, body: CrowdLinkIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    form = CrowdLinkForm(body.dict())
    checked(form)
    made, token = crowd_links.create_link(project=project, owner=person_of(request), **form.values())
    path = reverse("annotation:crowd_start", args=[token])
    address = request.build_absolute_uri(path) + filled_in(made.platform)
    return _crowd_link(made) | {"address": address}


@router.remove("projects/{slug:slug}/crowd-links/{link_id}", summary="Let nobody new in by a link; who is in finishes")
def revoke_crowd_link(request: HttpRequest, slug: str, link_id: str) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    crowd_links.revoke_link(link=get_object_or_404(project.crowd_links, pk=row_id(link_id)))


def _invitation(one: Invitation) -> dict[str, Any]:
    letter = getattr(one, "letter", None)
    return {
        "invitation": one.pk,
        "role": one.role,
        "note": one.note,
        "uses": one.uses,
        "maximum_uses": one.maximum_uses,
        "expires_at": one.expires_at,
        "mail": "" if letter is None else letter.state,
    }


def _crowd_link(one: CrowdLink) -> dict[str, Any]:
    return {
        "crowd_link": one.pk,
        "platform": one.platform,
        "study": one.study,
        "participants": one.participants.count(),
        "maximum_participants": one.maximum_participants,
        "answers_wanted": one.answers_wanted,
        "completion_code": one.completion_code,
        "expires_at": one.expires_at,
        "signed": one.signed,
    }
