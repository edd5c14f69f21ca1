import pytest

from annotation.models import Role
from annotation.models.history import Action
from annotation.projects.services import lifecycle
from tests.factories import add_members, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def manager(project):
    person = make_user("manager")
    add_members(project, person, role=Role.MANAGER)
    return person


def test_the_words_change_one_by_one(ask, project, manager):
    assert ask("GET", "description").json() == {
        "name": project.name,
        "question": "What is this about?",
        "lease_seconds": 600,
    }
    changed = ask("PATCH", "description", {"name": "  Letters "})
    assert changed.json() == {"name": "Letters", "question": "What is this about?", "lease_seconds": 600}
    assert ask("PATCH", "description", {"question": "Which?", "lease_seconds": 90}).json()["lease_seconds"] == 90
    project.refresh_from_db()
    assert (project.name, project.question, project.lease_seconds) == ("Letters", "Which?", 90)
    assert project.changes.latest("pk").actor == manager.get_username()
    assert Action.objects.latest("pk").route == "api:change_description"


def test_paused_and_resumed(ask, project):
    for _time in range(2):
        assert ask("POST", "state", {"state": "paused"}).json()["state"] == "paused"
    project.refresh_from_db()
    assert project.state == "paused"
    assert ask("POST", "state", {"state": "active"}).json()["state"] == "active"
    # Neither is how a project comes into the archive, or out of it.
    assert ask("POST", "state", {"state": "archived"}).status_code == 422
    lifecycle.archive_project(project=project)
    refused = ask("POST", "state", {"state": "active"})
    assert refused.status_code == 409
    assert "This project is archived and read-only" in refused.json()["code"]


def test_periods_change_one_by_one(ask, project, manager):
    before = {row["kind"]: row["days"] for row in ask("GET", "retention").json()}
    assert before == {"records": None, "answers": None, "comments": 365, "uploads": 90, "actions": 1095}
    changed = ask("PATCH", "retention", {"comments_days": 30, "uploads_days": None})
    assert {row["kind"]: row["days"] for row in changed.json()} == before | {"comments": 30, "uploads": None}
    assert project.changes.get().fields == {"keep_comments_days": [365, 30], "keep_uploads_days": [90, None]}
    assert project.changes.get().actor == manager.get_username()
    for sent in ({"actions_days": 89}, {"records_days": 0}, {"records_days": 36_501}):
        assert ask("PATCH", "retention", sent).status_code == 422
    assert project.changes.count() == 1
