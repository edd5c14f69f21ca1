"""People of a project, and the groups that give their roles."""

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from annotation.models import Label, Membership, Project, Role
from annotation.models.people import GroupRole


@dataclass(frozen=True, slots=True)
class PersonRole:
    membership: Membership
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GivenRole:
    given: GroupRole
    role: str
    people: int


def _memberships_of(project: Project) -> QuerySet[Membership]:
    answers = Label.objects.filter(annotator=OuterRef("user"), query__project=project, superseded_at=None)
    counted = answers.values("annotator").annotate(n=Count("pk")).values("n")
    return (
        Membership.objects.filter(project=project)
        .select_related("user")
        .annotate(label_count=Coalesce(Subquery(counted), 0))
        .order_by("role", "user__username")
    )


def project_people(project: Project) -> list[PersonRole]:
    sources: dict[tuple[int, str], list[str]] = defaultdict(list)
    rows = GroupRole.objects.filter(project=project, group__user__isnull=False).order_by("group__name")
    for user_id, role, name in rows.values_list("group__user", "role", "group__name"):
        sources[user_id, role].append(name)
    return [
        PersonRole(membership, tuple(sources.get((membership.user_id, membership.role), ())))
        for membership in _memberships_of(project)
    ]


def groups_in(project: Project) -> list[GivenRole]:
    given = GroupRole.objects.filter(project=project).select_related("group")
    return _in_words(given.order_by("group__name", "role"))


def _in_words(found: QuerySet[GroupRole]) -> list[GivenRole]:
    counted = found.annotate(people=Count("group__user"))
    return [GivenRole(given, str(Role(given.role).label), given.people) for given in counted]
