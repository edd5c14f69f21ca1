import pytest
from django.contrib.auth.models import Group

from annotation.models import Membership
from annotation.models.history import Action
from annotation.models.people import GroupRole
from tests.factories import make_manager, make_user
from tests.programs import Caller

pytestmark = pytest.mark.django_db


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
