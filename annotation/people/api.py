"""REST routes of members, groups, invitations, crowd links and mails."""

from datetime import datetime
from typing import Any, Literal

from django.contrib.auth.models import Group
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Field, Schema

from annotation.errors import InvalidConfiguration, RoleRefused
from annotation.models import Membership, Role
from annotation.models.joining import CrowdLink, Invitation, Platform
from annotation.models.letters import MailChoice
from annotation.models.people import GroupRole
from annotation.models.quality import Machine
from annotation.people import selectors as people_selectors
from annotation.people.forms import CrowdLinkForm, InvitationForm, MailForm, MemberForm, filled_in
from annotation.people.identity import person_of
from annotation.people.services import crowd_links, invitations, letters, limits, members
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, checked, project_for, require_scope, responses, row_id
from annotation.work.services.tokens import Scope
from privacy.wording import as_message

router = RoomRouter()


class MembershipOut(Answer, reads=Reads.MANAGED):
    """A role that somebody has in a project, and where it comes from."""

    membership: int
    username: str
    role: Role
    is_direct: bool = Field(description="Whether it was given to the person here, and can be taken from them here.")
    groups: list[str] = Field(description="Groups that give it, too.")
    labels: int
    is_machine: bool


class MembershipIn(Schema):
    """Somebody who has an account, and the role to give them."""

    username: str = Field(max_length=150)
    role: Role


class RoleGivenOut(Answer, reads=Reads.MANAGED):
    """Outcome: the role is given, or waits for another manager."""

    state: Literal["given", "waiting"]


class GroupRoleOut(Answer, reads=Reads.MANAGED):
    """The role that everybody of a group has in a project."""

    given: int
    group: str
    role: Role
    people: int


class GroupRolesOut(Answer, reads=Reads.MANAGED):
    """Roles of groups in the project, and all groups of the site by name."""

    given: list[GroupRoleOut]
    groups: list[str]


class GroupRoleIn(Schema):
    """A group by its name, and the role of everybody in it."""

    group: str = Field(max_length=150)
    role: Role


@router.get("projects/{slug:slug}/members", response=list[MembershipOut], summary="Who takes part, role by role")
def list_members(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    machines = set(Machine.objects.filter(project=project).values_list("user_id", flat=True))
    return [
        {
            "membership": one.membership.pk,
            "username": one.membership.user.get_username(),
            "role": one.membership.role,
            "is_direct": one.membership.is_direct,
            "groups": list(one.groups),
            "labels": one.membership.label_count,  # type: ignore[attr-defined]
            "is_machine": one.membership.user_id in machines,
        }
        for one in people_selectors.project_people(project)
    ]


@router.write(
    "projects/{slug:slug}/members",
    response=RoleGivenOut,
    summary="Give somebody a role, or ask another manager to agree to a further manager",
)
def add_member(request: HttpRequest, slug: str, body: MembershipIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    user = checked(MemberForm(body.dict()))["username"]
    if body.role != Role.MANAGER:
        members.add_member(project=project, user=user, role=body.role)
    elif limits.appoint_manager(project=project, user=user, actor=person_of(request)) is not None:
        return {"state": "waiting"}
    return {"state": "given"}


@router.remove(
    "projects/{slug:slug}/members/{membership_id}", summary="Take a role from somebody; what they labelled stays"
)
def remove_member(request: HttpRequest, slug: str, membership_id: str) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    held = Membership.objects.select_related("user")
    membership = get_object_or_404(held, pk=row_id(membership_id), project=project)
    if members.is_own_way_out(membership=membership, user=person_of(request)):
        raise RoleRefused(members.OWN_WAY_OUT)
    members.remove_member(project=project, user=membership.user, role=membership.role)


@router.get("projects/{slug:slug}/groups", response=GroupRolesOut, summary="Roles of groups, and what groups there are")
def list_group_roles(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    return {
        "given": [_given(one.given, one.people) for one in people_selectors.groups_in(project)],
        "groups": list(Group.objects.order_by("name").values_list("name", flat=True)),
    }


@router.write("projects/{slug:slug}/groups", response={201: GroupRoleOut}, summary="Give everybody of a group a role")
def give_group_role(request: HttpRequest, slug: str, body: GroupRoleIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    group = get_object_or_404(Group, name=body.group)
    given = members.give_role(group=group, project=project, role=body.role)
    return _given(given, group.user_set.count())


@router.remove(
    "projects/{slug:slug}/groups/{given_id}", summary="Take a role from a group; who has it by nothing else is out"
)
def take_group_role(request: HttpRequest, slug: str, given_id: str) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    given = get_object_or_404(GroupRole.objects.select_related("group"), pk=row_id(given_id), project=project)
    members.refuse_own_way_out(given=given, user=person_of(request))
    members.take_role(given=given)


def _given(given: GroupRole, people: int) -> dict[str, Any]:
    return {"given": given.pk, "group": given.group.name, "role": given.role, "people": people}


NO_MAIL = as_message("Copy an invitation's link and send it yourself.")


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


class MailsOut(Answer, reads=Reads.OWN):
    """The choice of mail."""

    wanted: bool
    language: str
    address: str = Field(description="The confirmed address that mail goes to; empty where there is none.")
    leaves_the_site: bool = Field(description="Whether this site sends mail at all.")


class MailsIn(Schema):
    """Changes of the choice; omitted fields stay."""

    wanted: bool | None = None
    language: str | None = Field(None, max_length=5)


@router.get("mails", response=MailsOut, summary="The caller's choice of mail")
def get_mails(request: HttpRequest) -> Any:
    require_scope(request, Scope.MAILS_WRITE)
    return _mails(request, letters.choice_of(person_of(request)))


@router.write("mails", response=MailsOut, summary="Turn the caller's mail on or off", problems=(), method="PATCH")
def choose_mails(request: HttpRequest, body: MailsIn) -> Any:
    require_scope(request, Scope.MAILS_WRITE)
    person = person_of(request)
    choice = letters.choice_of(person)
    sent = {"wanted": choice.wanted, "language": choice.language} | body.dict(exclude_none=True)
    return _mails(request, letters.choose_mails(person=person, **checked(MailForm(sent))))


def _mails(request: HttpRequest, choice: MailChoice) -> dict[str, Any]:
    return {
        "wanted": choice.wanted,
        "language": choice.language,
        "address": letters.mail_address(person_of(request)),
        "leaves_the_site": letters.leaves_the_site(),
    }
