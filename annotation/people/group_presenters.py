"""What the pages of groups and the people page show: who is in which group, and where a role comes from."""

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from annotation.models import Membership, Project, Role
from annotation.models.groups import GroupMember, GroupRole, PeopleGroup
from annotation.models.history import Action
from annotation.people.selectors import memberships_of

# What an administrator of the site needs to be allowed for keeping groups.
KEEPS_GROUPS = "annotation.change_peoplegroup"
SHOWN_ACTIONS = 20


@dataclass(frozen=True, slots=True)
class PersonRole:
    """A membership with the names of the groups that give it."""

    membership: Membership
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GivenRole:
    """A group's role in a project, in words."""

    given: GroupRole
    role: str
    people: int


def groups() -> QuerySet[PeopleGroup]:
    """Return all groups with how many people and projects each has."""
    counted = PeopleGroup.objects.annotate(
        people=Count("members", distinct=True), projects=Count("roles__project", distinct=True)
    )
    return counted.order_by("name", "pk")


def group_members(group: PeopleGroup) -> QuerySet[GroupMember]:
    """Return who is in a group, by name."""
    return members_of_id(group.pk)


def members_of_id(group_id: int) -> QuerySet[GroupMember]:
    """Return who is in the group of this number, by name."""
    return GroupMember.objects.filter(group=group_id).select_related("user", "group").order_by("user__username")


def roles_of(group: PeopleGroup) -> list[GivenRole]:
    """Return the projects in which a group has a role."""
    return _in_words(group.roles.select_related("project").order_by("project__name", "role", "pk"))


def actions_of(group: PeopleGroup) -> QuerySet[Action]:
    """Return the newest lines of the log about a group itself."""
    return Action.objects.filter(project=None, target__group_id=group.pk).order_by("-pk")[:SHOWN_ACTIONS]


def project_people(project: Project) -> list[PersonRole]:
    """Return who takes part and where each role comes from, in two statements."""
    sources: dict[tuple[int, str], list[str]] = defaultdict(list)
    rows = GroupRole.objects.filter(project=project, group__members__isnull=False).order_by("group__name")
    for user_id, role, name in rows.values_list("group__members__user", "role", "group__name"):
        sources[user_id, role].append(name)
    return [
        PersonRole(membership, tuple(sources.get((membership.user_id, membership.role), ())))
        for membership in memberships_of(project)
    ]


def groups_in(project: Project) -> list[GivenRole]:
    """Return the groups that have a role in a project, with how many people each brings."""
    given = GroupRole.objects.filter(project=project).select_related("group")
    return _in_words(given.order_by("group__name", "role"))


def _in_words(found: QuerySet[GroupRole]) -> list[GivenRole]:
    counted = found.annotate(people=Count("group__members"))
    return [GivenRole(given, str(Role(given.role).label), given.people) for given in counted]
