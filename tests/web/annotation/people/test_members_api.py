import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from annotation.models import Membership, Role
from annotation.models.history import Action
from annotation.models.limits import LimitRequest
from annotation.models.people import GroupRole
from annotation.people.services import appointing, groups, limits, members
from tests.factories import add_members, make_manager, make_project, make_user
from tests.rest_caller import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return make_project()


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


def test_a_manager_cannot_lock_the_project(project, manager, program, client):
    own = Membership.objects.get(project=project, user=manager)
    refused = program.delete(f"projects/{project.slug}/members/{own.pk}")
    assert (refused.status_code, refused.json()["code"]) == (409, members.OWN_WAY_OUT)
    client.force_login(manager)
    page = client.post(reverse("annotation:remove_member", args=[project.slug, own.pk]), follow=True)
    assert "You cannot take the manager&#x27;s role from yourself." in page.content.decode()
    assert Membership.objects.filter(pk=own.pk).exists()


def test_whoever_is_not_there_or_may_not_be_is_refused(project, program):
    at = f"projects/{project.slug}/members"
    nobody = program.post(at, {"username": "nobody", "role": "annotator"})
    assert nobody.status_code == 422
    assert "Nobody has an account under this name." in nobody.json()["detail"]
    assert program.post(at, {"username": "nobody", "role": "emperor"}).status_code == 422
    assert Membership.objects.filter(project=project).count() == 1


def test_a_further_manager_waits_where_it_takes_two(project, manager, program):
    add_members(project, make_user(), role=Role.MANAGER)
    limits.demand_second_manager(project=project)
    make_user("ann")
    asked = program.post(f"projects/{project.slug}/members", {"username": "ann", "role": "manager"})
    assert asked.json() == {"state": "waiting"}
    assert LimitRequest.objects.get(project=project).appointee.get_username() == "ann"
    assert not Membership.objects.filter(user__username="ann").exists()
    group = Group.objects.create(name="Night shift")
    by_group = program.post(f"projects/{project.slug}/groups", {"group": group.name, "role": "manager"})
    assert (by_group.status_code, by_group.json()["code"]) == (409, appointing.ALONE)


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


def test_nobody_takes_the_group_they_manage_by(project):
    boss = make_user("boss")
    group = Group.objects.create(name="Heads")
    group.user_set.add(boss)
    given = groups.give_role(group=group, project=project, role=Role.MANAGER)
    refused = Caller(boss).delete(f"projects/{project.slug}/groups/{given.pk}")
    assert refused.status_code == 409
    assert refused.json()["code"] == "You manage this project by the group {name} alone. Have somebody else do this."
    assert refused.json()["parameters"] == {"name": "Heads"}
