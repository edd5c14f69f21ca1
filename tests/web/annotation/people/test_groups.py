from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from annotation.models import Membership, Role
from annotation.models.history import Action
from annotation.models.people import GroupRole
from annotation.people.services import invitations, members
from tests.clients import browser_of
from tests.factories import add_members, make_manager, make_project, make_user
from tests.markup import tight
from tests.programs import Caller

pytestmark = pytest.mark.django_db


def browser(user: User) -> Client:
    return browser_of(user)


@pytest.fixture
def root() -> User:
    return make_user("root", is_staff=True, is_superuser=True)


@pytest.fixture
def group(root: User) -> Group:
    return Group.objects.create(name="Night shift")


@pytest.fixture
def boss() -> User:
    return make_user("boss")


@pytest.fixture
def project(boss: User):
    opened = make_project(owner=boss)
    add_members(opened, boss, role=Role.MANAGER)
    return opened


def put(client: Client, user: User, *into: Group):
    sent = {"username": user.username, "is_active": "on", "date_joined_0": "2026-01-01", "date_joined_1": "12:00:00"}
    answer = client.post(
        reverse("admin:auth_user_change", args=[user.pk]), sent | {"groups": [group.pk for group in into]}
    )
    assert answer.status_code == 302, answer.context["errors"]


def test_administrators_put_people_into_groups_and_delete_them(root, boss, project, group) -> None:
    client, ann = browser(root), make_user("ann")
    members.give_role(group=group, project=project, role=Role.ANNOTATOR)
    put(client, ann, group)
    assert Membership.objects.filter(project=project, user=ann).exists()
    shown = browser(boss).get(reverse("annotation:log", args=[project.slug])).content.decode()
    assert f"Group: members joined (people 1, Group {group.pk})" in shown
    put(client, ann)
    assert not Membership.objects.filter(project=project, user=ann).exists()
    put(client, ann, group)
    client.post(reverse("admin:auth_group_delete", args=[group.pk]), {"post": "yes"})
    assert not Membership.objects.filter(project=project, user=ann).exists()
    noted = project.actions.exclude(route__startswith="admin:").order_by("pk")
    assert list(noted.values_list("actor", "route")) == [
        ("root", route) for route in ("group:joined", "group:left", "group:joined", "group:left")
    ]


def test_a_manager_gives_a_role_and_sees_where_each_comes_from(boss, project, root, group) -> None:
    ann = make_user("ann")
    group.user_set.add(ann)
    client = browser(boss)
    answer = client.post(
        reverse("annotation:give_group_role", args=[project.slug]), {"group": group.pk, "role": "annotator"}
    )
    assert answer["Location"] == reverse("annotation:people", args=[project.slug])
    page = client.get(answer["Location"]).content.decode()
    assert "by the group Night shift" in page
    membership = Membership.objects.get(project=project, user=ann)
    remove = reverse("annotation:remove_member", args=[project.slug, membership.pk])
    # What a group gives is not taken here.
    assert remove not in page
    client.post(remove)
    assert Membership.objects.filter(pk=membership.pk).exists()
    client.post(reverse("annotation:people", args=[project.slug]), {"username": "ann", "role": "annotator"})
    assert "here, by the group Night shift" in tight(client.get(answer["Location"]).content.decode())
    given = group.roles.get()
    client.post(reverse("annotation:take_group_role", args=[project.slug, given.pk]))
    assert Membership.objects.get(pk=membership.pk).is_direct
    assert not group.roles.exists()


def test_joining_and_opening_a_project_stand_in_its_log(boss, project) -> None:
    _invitation, secret = invitations.create_invitation(
        project=project, role="annotator", owner=boss, maximum_uses=1, lifetime=timedelta(days=1)
    )
    browser(make_user("ann")).post(reverse("annotation:join", args=[secret]))
    line = Action.objects.get(route="annotation:join")
    assert (line.project, line.actor, line.target) == (project, "ann", {})


def test_the_administration_takes_and_gives_a_role_like_the_page(root, group, project) -> None:
    ann = make_user("ann")
    members.give_role(group=group, project=project, role=Role.ANNOTATOR)
    group.user_set.add(ann)
    client = browser(root)
    row = Membership.objects.get(project=project, user=ann)
    # A group gives it: taking it by hand leaves what the group gives.
    client.post(reverse("admin:annotation_membership_delete", args=[row.pk]), {"post": "yes"})
    assert Membership.objects.filter(pk=row.pk, is_direct=False).exists()
    assert (
        client.post(reverse("admin:annotation_membership_change", args=[row.pk]), {"role": "manager"}).status_code
        == 403
    )
    client.post(reverse("admin:annotation_membership_add"), {"project": project.pk, "user": ann.pk, "role": "engineer"})
    assert Membership.objects.get(project=project, user=ann, role="engineer").is_direct
    chosen = Membership.objects.get(project=project, user=ann, role="engineer")
    client.post(
        reverse("admin:annotation_membership_changelist"),
        {"action": "delete_selected", "_selected_action": [chosen.pk], "post": "yes"},
    )
    assert not Membership.objects.filter(pk=chosen.pk).exists()


@pytest.fixture
def manager(project):
    return make_manager(project)


@pytest.fixture
def program(manager):
    return Caller(manager)


def test_somebody_is_given_a_role_once_and_loses_it(project, manager, program):
    ann = make_user("ann")
    at = f"projects/{project.slug}/members"
    for _again in range(2):
        given = program.post(at, {"username": "ann", "role": "annotator"}, key="one")
        assert (given.status_code, given.json()) == (200, {"state": "given"})
    held = Membership.objects.get(project=project, user=ann)
    assert program.get(at).json()[0] == {
        "membership": held.pk,
        "username": "ann",
        "role": "annotator",
        "is_direct": True,
        "groups": [],
        "labels": 0,
        "is_machine": False,
    }
    assert program.delete(f"{at}/{held.pk}").status_code == 204
    assert program.delete(f"{at}/{held.pk}").status_code == 404
    assert not Membership.objects.filter(user=ann).exists()
    # The log says whose role it was by its number, as it does of the page.
    assert Action.objects.get(route="api:remove_member").target == {"membership_id": held.pk}


def test_a_group_is_given_a_role_and_loses_it(project, manager, program):
    group = Group.objects.create(name="Night shift")
    group.user_set.add(make_user("ann"))
    at = f"projects/{project.slug}/groups"
    assert program.get(at).json() == {"given": [], "groups": ["Night shift"]}
    for _again in range(2):
        given = program.post(at, {"group": "Night shift", "role": "engineer"}, key="one")
        assert given.status_code == 201
    assert given.json() | {"given": 0} == {"given": 0, "group": "Night shift", "role": "engineer", "people": 1}
    assert program.get(at).json()["given"] == [given.json()]
    (ann,) = (row for row in program.get(f"projects/{project.slug}/members").json() if row["username"] == "ann")
    assert (ann["groups"], ann["is_direct"]) == (["Night shift"], False)
    assert program.post(at, {"group": "Day shift", "role": "engineer"}).status_code == 404
    assert program.delete(f"{at}/{given.json()['given']}").status_code == 204
    assert not GroupRole.objects.exists()
    assert not Membership.objects.filter(user__username="ann").exists()
