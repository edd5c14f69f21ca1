"""REST routes of groups of people, for administrators of the site: who is in them, and how people come to them.

Which role a group has in a project its managers say, by routes of the project. A token needs scopes of their own for
these: whoever fills a group lets people into every project it is in.
"""

from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Schema

from annotation.errors import InvalidConfiguration
from annotation.models import Role
from annotation.models.groups import PeopleGroup
from annotation.people import group_presenters
from annotation.people.forms.groups import MOST_AT_ONCE, GroupForm, GroupInvitationForm, GroupPeopleForm
from annotation.people.identity import person_of
from annotation.people.joining_api import InvitationFields, MailedIn, invitation_fields, invited
from annotation.people.services import groups, invitations
from annotation.work.rest import RoomRouter, checked, require_scope, responses, row_id
from annotation.work.services.tokens import Scope
from privacy.wording import as_message

router = RoomRouter()


class GroupOut(Schema):
    """A group, how many people are in it, and in how many projects it has a role."""

    group: int
    name: str
    people: int
    projects: int


class PlaceOut(Schema):
    """Somebody in a group; `place` is the address by which they are taken out."""

    place: int
    username: str
    since: datetime


class GroupPlaceOut(Schema):
    """A project in which everybody of a group has a role."""

    project: str
    role: Role


class WholeGroupOut(GroupOut):
    """A group with its people, and what it gives them."""

    members: list[PlaceOut]
    roles: list[GroupPlaceOut]


class GroupIn(Schema):
    """What a group is called."""

    name: str = Field(max_length=80)


class GroupPeopleIn(Schema):
    """People by user name, or by an address that they have confirmed."""

    people: list[str] = Field(min_length=1, max_length=MOST_AT_ONCE)


class PeopleChangedOut(Schema):
    """How many people came or went, and how many are in the group now."""

    changed: int
    people: int


class GroupDeletionIn(Schema):
    """The word that a group ends, with all that it gave."""

    typed: str = Field(max_length=80, description="The group's name, as a confirmation.")


class GroupInvitationOut(InvitationFields):
    """A link that still lets somebody into a group."""


class GroupInvitationMadeOut(GroupInvitationOut):
    """A new invitation with its link, which is told this once."""

    link: str


@router.get("groups", response=list[GroupOut], summary="Groups of people of the site")
def list_groups(request: HttpRequest) -> Any:
    _keeper(request, Scope.GROUPS_READ)
    return [_group(one) for one in group_presenters.groups()]


@router.write("groups", response={201: GroupOut}, summary="Make an empty group")
def make_group(request: HttpRequest, body: GroupIn) -> Any:
    _keeper(request, Scope.GROUPS_WRITE)
    made = groups.create_group(name=checked(GroupForm(body.dict()))["name"], owner=person_of(request))
    return _group(group_presenters.groups().get(pk=made.pk))


@router.get("groups/{group_id}", response=WholeGroupOut, summary="One group, its people and its roles")
def get_group(request: HttpRequest, group_id: str) -> Any:
    found = _found(request, group_id, Scope.GROUPS_READ)
    return _group(found) | {
        "members": [
            {"place": one.pk, "username": one.user.get_username(), "since": one.created_at}
            for one in group_presenters.group_members(found)
        ],
        "roles": [
            {"project": one.given.project.slug, "role": one.given.role} for one in group_presenters.roles_of(found)
        ],
    }


@router.write("groups/{group_id}", response=GroupOut, summary="Give a group another name", method="PATCH")
def rename_group(request: HttpRequest, group_id: str, body: GroupIn) -> Any:
    found = _found(request, group_id, Scope.GROUPS_WRITE)
    groups.rename_group(group=found, name=checked(GroupForm(body.dict()))["name"])
    return _group(found)


@router.post(
    "groups/{group_id}/deletion",
    response={204: None},
    summary="End a group, and what it gave",
    openapi_extra=responses(409),
)
def delete_group(request: HttpRequest, group_id: str, body: GroupDeletionIn) -> None:
    found = _found(request, group_id, Scope.GROUPS_WRITE)
    if body.typed != found.name:
        raise InvalidConfiguration(as_message("Type the name of the group as it stands there."))
    groups.delete_group(group=found, actor=person_of(request).get_username())


@router.write(
    "groups/{group_id}/people", response=PeopleChangedOut, summary="Put people into a group, which gives them its roles"
)
def add_group_people(request: HttpRequest, group_id: str, body: GroupPeopleIn) -> Any:
    return _change_people(request, group_id, body, groups.add_people)


@router.write(
    "groups/{group_id}/people/removal",
    response=PeopleChangedOut,
    summary="Take people out of a group; who has a role by nothing else is out, and what they labelled stays",
)
def remove_group_people(request: HttpRequest, group_id: str, body: GroupPeopleIn) -> Any:
    return _change_people(request, group_id, body, groups.remove_people)


@router.remove(
    "groups/{group_id}/people/{place_id}",
    summary="Take one person out of a group, whatever has become of their account",
)
def remove_from_group(request: HttpRequest, group_id: str, place_id: str) -> None:
    found = _found(request, group_id, Scope.GROUPS_WRITE)
    place = get_object_or_404(group_presenters.group_members(found), pk=row_id(place_id))
    groups.remove_people(group=found, people=[place.user], actor=person_of(request).get_username())


@router.get(
    "groups/{group_id}/invitations",
    response=list[GroupInvitationOut],
    summary="Invitations that let somebody into a group",
)
def list_group_invitations(request: HttpRequest, group_id: str) -> Any:
    found = _found(request, group_id, Scope.GROUPS_READ)
    live = invitations.live_invitations().filter(group=found)
    return [invitation_fields(one) for one in live.select_related("letter").order_by("-pk")]


@router.post(
    "groups/{group_id}/invitations",
    response={201: GroupInvitationMadeOut},
    summary="Make an invitation into a group, and send it by mail if it names an address",
    openapi_extra=responses(409),
)
def make_group_invitation(request: HttpRequest, group_id: str, body: MailedIn) -> Any:
    found = _found(request, group_id, Scope.GROUPS_WRITE)
    made, link = invited(request, body, GroupInvitationForm, group=found)
    return invitation_fields(made) | {"link": link}


@router.remove(
    "groups/{group_id}/invitations/{invitation_id}", summary="End an invitation into a group; who came by it stays"
)
def revoke_group_invitation(request: HttpRequest, group_id: str, invitation_id: str) -> None:
    found = _found(request, group_id, Scope.GROUPS_WRITE)
    invitations.revoke_invitation(invitation=get_object_or_404(found.invitations, pk=row_id(invitation_id)))


def _keeper(request: HttpRequest, scope: Scope) -> None:
    """Refuse who may not keep groups, before saying whether there is one."""
    require_scope(request, scope)
    if not person_of(request).has_perm(group_presenters.KEEPS_GROUPS):
        raise PermissionDenied("Administrators of the site keep its groups.")


def _found(request: HttpRequest, group_id: str, scope: Scope) -> PeopleGroup:
    _keeper(request, scope)
    return get_object_or_404(group_presenters.groups(), pk=row_id(group_id))


def _change_people(request: HttpRequest, group_id: str, body: GroupPeopleIn, change: Any) -> dict[str, int]:
    found = _found(request, group_id, Scope.GROUPS_WRITE)
    people = checked(GroupPeopleForm({"people": "\n".join(body.people)}))["people"]
    changed = change(group=found, people=people, actor=person_of(request).get_username())
    return {"changed": changed, "people": found.members.count()}


def _group(one: Any) -> dict[str, Any]:
    return {"group": one.pk, "name": one.name, "people": one.people, "projects": one.projects}
