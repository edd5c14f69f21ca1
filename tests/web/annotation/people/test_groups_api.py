"""Groups by REST: an administrator with a token for them keeps them as on their pages, and nobody else does."""

from datetime import timedelta

import pytest

from annotation.models import Membership, Role
from annotation.models.groups import PeopleGroup
from annotation.models.history import Action
from annotation.models.joining import Invitation
from annotation.people.services import crowd_links, groups
from tests import learning
from tests.factories import make_project, make_user
from tests.programs import Program
from tests.rest_caller import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def root():
    return make_user("root", is_staff=True, is_superuser=True)


@pytest.fixture
def program(root):
    return Caller(root)


@pytest.fixture
def group(root):
    return groups.create_group(name="Night shift", owner=root)


def test_a_group_is_made_filled_named_and_deleted(program, root):
    ann, ben = make_user("ann"), make_user("ben")
    made = program.post("groups", {"name": "Day shift"}, key="once")
    assert made.status_code == 201
    group = PeopleGroup.objects.get()
    assert (made.json(), group.created_by) == (
        {"group": group.pk, "name": "Day shift", "people": 0, "projects": 0},
        root,
    )
    assert program.post("groups", {"name": "Day shift"}, key="once").json() == made.json()
    assert program.post("groups", {"name": "day SHIFT"}).status_code == 409
    at, project = f"groups/{group.pk}", make_project()
    groups.give_role(group=group, project=project, role=Role.ANNOTATOR)
    assert program.post(f"{at}/people", {"people": ["ann", "ben"]}).json() == {"changed": 2, "people": 2}
    assert program.post(f"{at}/people", {"people": ["ann"]}).json() == {"changed": 0, "people": 2}
    assert set(Membership.objects.filter(project=project).values_list("user", flat=True)) == {ann.pk, ben.pk}
    told = program.get(at).json()
    assert [one["username"] for one in told["members"]] == ["ann", "ben"]
    assert told["roles"] == [{"project": project.slug, "role": "annotator"}]
    assert program.post(f"{at}/people/removal", {"people": ["ben"]}).json() == {"changed": 1, "people": 1}
    assert program.delete(f"{at}/people/{told['members'][0]['place']}").status_code == 204
    assert program.delete(f"{at}/people/{told['members'][0]['place']}").status_code == 404
    assert not Membership.objects.filter(project=project).exists()
    assert program.patch(at, {"name": "Late shift"}).json()["name"] == "Late shift"
    assert [one["name"] for one in program.get("groups").json()] == ["Late shift"]
    refused = program.post(f"{at}/deletion", {"typed": "Day shift"})
    assert (refused.status_code, refused.json()["code"]) == (422, "Type the name of the group as it stands there.")
    assert program.post(f"{at}/deletion", {"typed": "Late shift"}).status_code == 204
    assert program.get(at).status_code == 404
    done = Action.objects.filter(project=None, actor="root", target__group_id=group.pk).order_by("pk")
    assert [action.route.removeprefix("api:") for action in done] == [
        *("add_group_people", "add_group_people", "remove_group_people", "remove_from_group"),
        *("rename_group", "delete_group"),
    ]
    # What it meant for the project stands in the project's log, under the same name.
    meant = Action.objects.filter(project=project).order_by("pk").values_list("actor", "route")
    assert list(meant) == [("root", "group:joined"), *[("root", "group:left")] * 3]


def test_whom_nobody_knows_is_named_and_strangers_join_no_group(program, group):
    at = f"groups/{group.pk}/people"
    refused = program.post(at, {"people": ["nobody"]})
    assert refused.status_code == 422
    assert "Nobody has an account under: nobody" in refused.json()["detail"]
    crowd = learning.open_crowd(make_user())
    link, _token = crowd_links.create_link(
        project=crowd,
        owner=make_user(),
        lifetime=timedelta(days=1),
        platform="prolific",
        study="",
        answers_wanted=1,
        maximum_participants=1,
    )
    stranger = crowd_links.join(link=link, pid="somebody").user
    assert program.post(at, {"people": [stranger.get_username()]}).status_code == 409
    assert not group.members.exists()


def test_an_invitation_into_a_group_is_told_once_and_revoked(program, group):
    at = f"groups/{group.pk}/invitations"
    made = program.post(at, {"maximum_uses": 5, "note": "the agency"}).json()
    assert "/join/" in made.pop("link")
    assert program.get(at).json() == [made]
    assert (made["note"], made["maximum_uses"], made["mail"]) == ("the agency", 5, "")
    other = groups.create_group(name="Day shift", owner=make_user())
    assert program.delete(f"groups/{other.pk}/invitations/{made['invitation']}").status_code == 404
    assert program.delete(f"{at}/{made['invitation']}").status_code == 204
    assert program.get(at).json() == []
    assert Invitation.objects.get().revoked_at is not None


def test_who_keeps_no_groups_does_not_hear_which_there_are(group):
    """A manager's token of every scope; and a group that is not there is answered the same."""
    manager = Caller(make_user())
    sent = [manager.post(f"groups/{group.pk}/people", {"people": ["ann"]}), manager.get("groups")]
    sent += [manager.get(f"groups/{number}") for number in (group.pk, 0)]
    assert [answer.status_code for answer in sent] == [403] * 4
    assert len({answer.content for answer in sent}) == 1


def test_a_token_for_projects_alone_opens_no_group(root, group):
    narrow = Program(root, make_project(), "projects:read", "projects:write", "groups:read")
    answer = narrow.client.post(f"/api/v1/groups/{group.pk}/people", {"people": ["root"]}, "application/json")
    assert answer.status_code == 403
    assert "groups:write" in answer.json()["detail"]
