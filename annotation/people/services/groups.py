"""Groups of people: who is in them, what they may do where, and the memberships that follow from both.

The sources change first, which locks the group; then the memberships concerned are locked, and what they should be is
read in a later statement, so that of two sessions the second one sees what the first one did.
"""

from collections.abc import Collection, Iterable

from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.errors import GroupRefused
from annotation.models import Assignment, AssignmentState, Membership, Project, ProjectState, Role
from annotation.models.groups import GroupMember, GroupRole, PeopleGroup
from annotation.models.joining import CrowdParticipant
from annotation.people.services import appointing
from annotation.work.services import history, leases
from privacy.wording import as_message

# What a project's log says when people come and go by a group; nobody's page has these names.
JOINED, LEFT = "group:joined", "group:left"
# Where somebody has the role already, the row is locked all the same: nobody takes it away meanwhile.
GIVE = """
INSERT INTO annotation_membership (project_id, user_id, role, is_direct, pause_reason, created_at)
SELECT given.project_id, place.user_id, given.role, false, '', now()
FROM annotation_grouprole given JOIN annotation_groupmember place USING (group_id)
WHERE given.group_id = %(group)s
  AND (%(people)s::int[] IS NULL OR place.user_id = ANY(%(people)s))
  AND (%(given)s::bigint IS NULL OR given.id = %(given)s)
ORDER BY given.project_id, place.user_id, given.role
ON CONFLICT (project_id, user_id, role) DO UPDATE SET is_direct = annotation_membership.is_direct
"""


def create_group(*, name: str, owner: User) -> PeopleGroup:
    """Make an empty group; names differ by more than capitals."""
    try:
        with transaction.atomic():
            return PeopleGroup.objects.create(name=name, created_by=owner)
    except IntegrityError as error:
        raise GroupRefused("A group of this name is there already.") from error


def rename_group(*, group: PeopleGroup, name: str) -> PeopleGroup:
    """Give a group another name."""
    try:
        with transaction.atomic():
            PeopleGroup.objects.filter(pk=group.pk).update(name=name)
    except IntegrityError as error:
        raise GroupRefused("A group of this name is there already.") from error
    group.name = name
    return group


def delete_group(*, group: PeopleGroup, actor: str) -> None:
    """End a group: whatever it gave ends with it."""
    with transaction.atomic():
        lock(group)
        people = list(group.members.values_list("user_id", flat=True))
        roles = list(group.roles.all())
        _note(group, actor=actor, route=LEFT, people=len(people))
        group.delete()
        _take_back(_memberships(roles, people))


def add_people(*, group: PeopleGroup, people: Iterable[User], actor: str) -> int:
    """Put people into a group, which gives them its roles; return how many were not in it before."""
    wanted = {person.pk for person in people}
    if CrowdParticipant.objects.filter(user__in=wanted).exists():
        raise GroupRefused("Whoever came by a crowd platform is a stranger and joins no group.")
    with transaction.atomic():
        lock(group)
        new = wanted - set(group.members.filter(user__in=wanted).values_list("user_id", flat=True))
        GroupMember.objects.bulk_create(GroupMember(group=group, user_id=person) for person in sorted(new))
        _give(group, people=sorted(new))
        if new:
            _note(group, actor=actor, route=JOINED, people=len(new))
    return len(new)


def remove_people(*, group: PeopleGroup, people: Iterable[User], actor: str) -> int:
    """Take people out of a group, and with it what nothing else gives them; what they labelled stays theirs."""
    with transaction.atomic():
        lock(group)
        places = group.members.filter(user__in=[person.pk for person in people])
        gone = list(places.values_list("user_id", flat=True))
        places.delete()
        _take_back(_memberships(list(group.roles.all()), gone))
        if gone:
            _note(group, actor=actor, route=LEFT, people=len(gone))
    return len(gone)


def give_role(*, group: PeopleGroup, project: Project, role: str) -> GroupRole:
    """Give everybody of a group a role in a project; giving it twice changes nothing."""
    with transaction.atomic():
        # Deleting a project takes the same lock, so no role is given behind its back.
        if Project.objects.select_for_update(no_key=True).get(pk=project.pk).state == ProjectState.DELETED:
            raise GroupRefused("This project is deleted; what is left of it can only be read.")
        appointing.refuse_alone(project=project, role=role)
        appointing.refuse_reviewer(project=project, role=role)
        given, _created = GroupRole.objects.get_or_create(group=group, project=project, role=role)
        _give(group, given=given.pk)
    return given


def take_role(*, given: GroupRole) -> None:
    """Take a role from a group: who has it by nothing else is out at once."""
    with transaction.atomic():
        lock(given.group)
        people = list(given.group.members.values_list("user_id", flat=True))
        kept = GroupRole(group=given.group, project_id=given.project_id, role=given.role)
        given.delete()
        _take_back(_memberships([kept], people))


def take_all_roles(*, project: Project, role: str) -> None:
    """Take a role in a project from every group, in the caller's transaction, which ends the memberships itself."""
    GroupRole.objects.filter(project=project, role=role).delete()


def lock(group: PeopleGroup) -> None:
    """Have whoever else changes the group wait until the caller's transaction ends."""
    PeopleGroup.objects.select_for_update(no_key=True).get(pk=group.pk)


def _give(group: PeopleGroup, *, people: Collection[int] | None = None, given: int | None = None) -> None:
    values = {"group": group.pk, "people": None if people is None else list(people), "given": given}
    with connection.cursor() as cursor:
        cursor.execute(GIVE, values)


def by_group() -> Exists:
    """Return the condition that a group gives the membership."""
    return Exists(
        GroupRole.objects.filter(
            project=OuterRef("project"), role=OuterRef("role"), group__members__user=OuterRef("user")
        )
    )


def _memberships(roles: Collection[GroupRole], people: Collection[int]) -> QuerySet[Membership]:
    if not roles or not people:
        return Membership.objects.none()
    given = Q()
    for role in roles:
        given |= Q(project=role.project_id, role=role.role)
    return Membership.objects.filter(given, user__in=people)


def _take_back(concerned: QuerySet[Membership]) -> None:
    """End those of the memberships that nothing gives any more, and give back what their people hold."""
    ordered = concerned.select_for_update().order_by("project_id", "user_id", "role")
    locked = list(ordered.values_list("pk", flat=True))
    ended = list(Membership.objects.filter(~by_group(), pk__in=locked, is_direct=False))
    Membership.objects.filter(pk__in=[each.pk for each in ended]).delete()
    at_work = [each for each in ended if each.role == Role.ANNOTATOR]
    held = Q()
    for each in at_work:
        held |= Q(project=each.project_id, annotator=each.user_id)
    if at_work:
        leases.give_back(Assignment.objects.filter(held, state=AssignmentState.LEASED))
    for each in at_work:
        leases.free_assigned(project_id=each.project_id, user_id=each.user_id)
    for each in ended:
        leases.end_reviews(project_id=each.project_id, user_id=each.user_id)


def _note(group: PeopleGroup, *, actor: str, route: str, people: int) -> None:
    """Say in the log of every project the group is in that people came or went."""
    for project in Project.objects.filter(group_roles__group=group).distinct().order_by("pk"):
        history.note_effect(project=project, actor=actor, route=route, target={"group_id": group.pk, "people": people})


def refuse_own_way_out(*, given: GroupRole, user: User) -> None:
    """Refuse somebody who would take the manager's role from themselves, and perhaps leave nobody who has it."""
    by_this = given.role == Role.MANAGER and given.group.members.filter(user=user).exists()
    others = GroupRole.objects.filter(project=given.project_id, role=Role.MANAGER, group__members__user=user)
    direct = Membership.objects.filter(project=given.project_id, user=user, role=Role.MANAGER, is_direct=True)
    if by_this and not direct.exists() and not others.exclude(pk=given.pk).exists():
        raise GroupRefused(
            as_message(
                "You manage this project by the group {name} alone. Have somebody else do this.", name=given.group.name
            )
        )
