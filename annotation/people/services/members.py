"""Roles in a project, given and taken from people and groups."""

from collections.abc import Collection, Iterable
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from annotation import selectors
from annotation.errors import GroupRefused, RoleRefused
from annotation.models import Assignment, AssignmentState, Membership, Oracle, Project, ProjectState, Role
from annotation.models.joining import CrowdLink, CrowdParticipant, Invitation
from annotation.models.limits import LimitRequest, RequestKind, RequestState
from annotation.models.people import GroupRole
from annotation.work.services import history, leases
from privacy.wording import as_message

ALONE = as_message("Another manager must approve a new manager: give the role on the page People.")

ONLY_MANAGERS_REVIEW = as_message("Crowd projects have no reviewers.")


def needs_second(project: Project, role: str) -> bool:
    return role == Role.MANAGER and Project.objects.filter(pk=project.pk, second_manager=True).exists()


def refuse_alone(*, project: Project, role: str, user: User | None = None) -> None:
    """Refuse to make somebody a manager whom no second manager agreed to; without a person, whoever it would be."""
    if not needs_second(project, role):
        return
    if user is not None and (_is_manager(project, user) or _is_agreed(project, user)):
        return
    raise RoleRefused(ALONE)


def refuse_reviewer(*, project: Project, role: str) -> None:
    if role == Role.REVIEWER and project.oracle == Oracle.CROWD:
        raise RoleRefused(ONLY_MANAGERS_REVIEW)


def _is_manager(project: Project, user: User) -> bool:
    return Membership.objects.filter(project=project, user=user, role=Role.MANAGER).exists()


def _is_agreed(project: Project, user: User) -> bool:
    approved = LimitRequest.objects.filter(project=project, appointee=user, kind=RequestKind.MANAGER)
    return approved.filter(state=RequestState.APPROVED, used_at=None, expires_at__gte=Now()).exists()


# What a project's log says when people come and go by a group; nobody's page has these names.
JOINED, LEFT = "group:joined", "group:left"


def refuse_strangers(people: Iterable[int]) -> None:
    if CrowdParticipant.objects.filter(user__in=people).exists():
        raise GroupRefused("Crowd workers can only annotate.")


def follow_places(*, instance: Any, action: str, reverse: bool, pk_set: set[int] | None, **_signal: Any) -> None:
    """Give and take roles when people come to a group or leave it; receives `m2m_changed` of `User.groups`."""
    if action == "pre_clear":
        field = instance.user_set if reverse else instance.groups
        instance.leaving = set(field.values_list("pk", flat=True))
    others = sorted(instance.leaving if action.endswith("_clear") else pk_set or ())
    groups, people = ([instance.pk], others) if reverse else (others, [instance.pk])
    if action.startswith("pre_"):
        if action == "pre_add":
            refuse_strangers(people)
        lock(groups)
        return
    for group in Group.objects.filter(pk__in=groups).order_by("pk"):
        if action == "post_add":
            _give(group, people=people)
        else:
            _take_back(_memberships(list(group.roles.all()), people))
        if people:
            _note(group, route=JOINED if action == "post_add" else LEFT, people=len(people))


def before_group_ends(*, instance: Group, **_signal: Any) -> None:
    """Note what a group gave before it is deleted; receives `pre_delete`."""
    lock([instance.pk])
    people = list(instance.user_set.values_list("pk", flat=True))
    _note(instance, route=LEFT, people=len(people))
    instance.gave = (list(instance.roles.all()), people)  # type: ignore[attr-defined]


def after_group_ended(*, instance: Group, **_signal: Any) -> None:
    """Take back what a deleted group gave; receives `post_delete`."""
    _take_back(_memberships(*instance.gave))  # type: ignore[attr-defined]


def give_role(*, group: Group, project: Project, role: str) -> GroupRole:
    with transaction.atomic():
        # Deleting a project takes the same lock, so no role is given behind its back.
        if Project.objects.select_for_update(no_key=True).get(pk=project.pk).state == ProjectState.DELETED:
            raise GroupRefused("This project is deleted and read-only.")
        refuse_alone(project=project, role=role)
        refuse_reviewer(project=project, role=role)
        given, _created = GroupRole.objects.get_or_create(group=group, project=project, role=role)
        _give(group, given=given.pk)
    return given


def take_role(*, given: GroupRole) -> None:
    with transaction.atomic():
        lock([given.group_id])
        people = list(given.group.user_set.values_list("pk", flat=True))
        kept = GroupRole(group=given.group, project_id=given.project_id, role=given.role)
        given.delete()
        _take_back(_memberships([kept], people))


def take_all_roles(*, project: Project, role: str) -> None:
    """Take a role in a project from every group, in the caller's transaction, which ends the memberships itself."""
    GroupRole.objects.filter(project=project, role=role).delete()


def lock(groups: Collection[int]) -> None:
    """Have other changes of the groups wait until the caller's transaction ends."""
    list(Group.objects.select_for_update(no_key=True).filter(pk__in=groups).order_by("pk"))


def _give(group: Group, *, people: Collection[int] | None = None, given: int | None = None) -> None:
    roles = group.roles.all() if given is None else group.roles.filter(pk=given)
    members = group.user_set.all() if people is None else group.user_set.filter(pk__in=people)
    places = [
        Membership(project_id=role.project_id, user_id=user, role=role.role, is_direct=False)
        for role in roles.order_by("project_id", "role")
        for user in members.order_by("pk").values_list("pk", flat=True)
    ]
    places.sort(key=lambda place: (place.project_id, place.user_id, place.role))
    # Where somebody has the role already, the row is locked all the same: nobody takes it away meanwhile.
    Membership.objects.bulk_create(
        places, update_conflicts=True, unique_fields=["project", "user", "role"], update_fields=["role"]
    )


def by_group() -> Exists:
    return Exists(
        GroupRole.objects.filter(project=OuterRef("project"), role=OuterRef("role"), group__user=OuterRef("user"))
    )


def _memberships(roles: Collection[GroupRole], people: Collection[int]) -> QuerySet[Membership]:
    if not roles or not people:
        return Membership.objects.none()
    given = Q()
    for role in roles:
        given |= Q(project=role.project_id, role=role.role)
    return Membership.objects.filter(given, user__in=people)


def end_ways_in(*, project_id: int, user_id: int) -> list[str]:
    live = Q(project=project_id, created_by=user_id, revoked_at=None, expires_at__gt=Now())
    invitations, links = Invitation.objects.filter(live), CrowdLink.objects.filter(live)
    names = [each.note or each.role for each in invitations] + [each.study or each.platform for each in links]
    invitations.update(revoked_at=Now())
    links.update(revoked_at=Now())
    return names


def _take_back(concerned: QuerySet[Membership]) -> None:
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
        if each.role == Role.MANAGER:
            end_ways_in(project_id=each.project_id, user_id=each.user_id)


def _note(group: Group, *, route: str, people: int) -> None:
    for project in Project.objects.filter(group_roles__group=group).distinct().order_by("pk"):
        history.note_effect(
            project=project, actor=history.current_actor(), route=route, target={"group_id": group.pk, "people": people}
        )


def refuse_own_way_out(*, given: GroupRole, user: User) -> None:
    """Refuse somebody who would take the manager's role from themselves, and perhaps leave nobody who has it."""
    by_this = given.role == Role.MANAGER and given.group.user_set.filter(pk=user.pk).exists()
    others = GroupRole.objects.filter(project=given.project_id, role=Role.MANAGER, group__user=user)
    direct = Membership.objects.filter(project=given.project_id, user=user, role=Role.MANAGER, is_direct=True)
    if by_this and not direct.exists() and not others.exclude(pk=given.pk).exists():
        raise GroupRefused(
            as_message(
                "You are manager only through the group {name}. Another manager must do this.", name=given.group.name
            )
        )


STRANGER = as_message("Crowd workers can only annotate.")
OWN_WAY_OUT = as_message("You cannot remove your own manager role.")


def add_member(*, project: Project, user: User, role: str) -> Membership:
    if not selectors.may_take_role(user, project, role):
        raise RoleRefused(STRANGER)
    refuse_alone(project=project, user=user, role=role)
    refuse_reviewer(project=project, role=role)
    membership, _ = Membership.objects.update_or_create(
        project=project, user=user, role=role, defaults={"is_direct": True}
    )
    return membership


def remove_member(*, project: Project, user: User, role: str) -> list[str]:
    own = Membership.objects.filter(project=project, user=user, role=role)
    with transaction.atomic():
        # Locked first: a group that gives or takes the role at this moment is seen, or waits.
        locked = own.select_for_update().first()
        if locked is None:
            return []
        if own.filter(by_group()).exists():
            own.update(is_direct=False)
            return []
        locked.delete()
        if role == Role.ANNOTATOR:
            held = Assignment.objects.filter(project=project, annotator=user, state=AssignmentState.LEASED)
            leases.give_back(held)
            leases.free_assigned(project_id=project.pk, user_id=user.pk)
        leases.end_reviews(project_id=project.pk, user_id=user.pk)
        return end_ways_in(project_id=project.pk, user_id=user.pk) if role == Role.MANAGER else []


def is_own_way_out(*, membership: Membership, user: User) -> bool:
    """Say whether somebody would take the manager's role from themselves, and perhaps leave nobody who has it."""
    return membership.user_id == user.pk and membership.role == Role.MANAGER
