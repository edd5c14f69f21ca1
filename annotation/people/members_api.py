"""REST routes of who takes part in a project: people and groups, each with a role."""

from typing import Any, Literal

from django.contrib.auth.models import Group
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Schema

from annotation.errors import RoleRefused
from annotation.models import Membership, Role
from annotation.models.groups import GroupRole
from annotation.models.machines import MachineAnnotator
from annotation.people import group_presenters
from annotation.people.forms.joining import MemberForm
from annotation.people.identity import person_of
from annotation.people.services import groups, limits, members
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, checked, project_for, row_id
from annotation.work.services.tokens import Scope

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
    """Whether the role is given, or waits for another manager."""

    state: Literal["given", "waiting"]


class GroupRoleOut(Answer, reads=Reads.MANAGED):
    """The role that everybody of a group has in a project."""

    given: int
    group: str
    role: Role
    people: int


class GroupRolesOut(Answer, reads=Reads.MANAGED):
    """What groups have which role, and all groups of the site by name."""

    given: list[GroupRoleOut]
    groups: list[str]


class GroupRoleIn(Schema):
    """A group by its name, and the role of everybody in it."""

    group: str = Field(max_length=150)
    role: Role


@router.get("projects/{slug:slug}/members", response=list[MembershipOut], summary="Who takes part, role by role")
def list_members(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    machines = set(MachineAnnotator.objects.filter(project=project).values_list("user_id", flat=True))
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
        for one in group_presenters.project_people(project)
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
        "given": [_given(one.given, one.people) for one in group_presenters.groups_in(project)],
        "groups": list(Group.objects.order_by("name").values_list("name", flat=True)),
    }


@router.write("projects/{slug:slug}/groups", response={201: GroupRoleOut}, summary="Give everybody of a group a role")
def give_group_role(request: HttpRequest, slug: str, body: GroupRoleIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    group = get_object_or_404(Group, name=body.group)
    given = groups.give_role(group=group, project=project, role=body.role)
    return _given(given, group.user_set.count())


@router.remove(
    "projects/{slug:slug}/groups/{given_id}", summary="Take a role from a group; who has it by nothing else is out"
)
def take_group_role(request: HttpRequest, slug: str, given_id: str) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    given = get_object_or_404(GroupRole.objects.select_related("group"), pk=row_id(given_id), project=project)
    groups.refuse_own_way_out(given=given, user=person_of(request))
    groups.take_role(given=given)


def _given(given: GroupRole, people: int) -> dict[str, Any]:
    return {"given": given.pk, "group": given.group.name, "role": given.role, "people": people}
