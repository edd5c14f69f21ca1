import pytest

from annotation.models import Role
from learner.models import Endorsement, ReleaseState
from learner.pools import selectors
from learner.releases import storage
from learner.releases.services import checks
from tests import learning
from tests.factories import add_members, make_user
from tests.programs import Program

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def manager():
    return make_user("manager")


@pytest.fixture
def project(manager):
    opened = learning.open_trusted(manager)
    learning.fill_trusted(opened)
    return opened


@pytest.fixture
def ask(project, manager):
    return Program(manager, project)


@pytest.fixture
def engineer(project):
    person = make_user()
    add_members(project, person, role=Role.ENGINEER)
    return Program(person, project)


def test_a_candidate_is_checked_again(ask, engineer, project, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(checks, "check_release", lambda **_: None)
        candidate = learning.run_to_release(project, make_user(), version=1)
    (storage.folder_of(candidate) / "card.md").write_text("epsilon 0")
    held = checks.check_release(release_id=candidate.pk)
    assert "do not match" in held.held_back
    sent = []
    monkeypatch.setattr("annotation.work.services.sending.current_app.send_task", lambda task, **_: sent.append(task))
    assert engineer("POST", "models/1/check", {}).status_code == 404
    assert sent == []
    asked = ask("POST", "models/1/check", {})
    assert (asked.status_code, asked.json()) == (202, {"version": 1, "state": "candidate", "held_back": ""})
    assert sent == ["learner.tasks.check_release_task"]
    assert ask("POST", "models/2/check", {}).status_code == 404


def test_what_is_released_is_not_checked_again(ask, project):
    release = learning.run_to_release(project, make_user(), version=1)
    assert ask("POST", "models/1/check", {}).json()["state"] == "released"
    release.refresh_from_db()
    assert (release.state, release.checks["files"]) == (ReleaseState.RELEASED, "passed")


def test_a_manager_offers_what_a_constant_beats(ask, engineer, project):
    release = learning.run_to_release(project, make_user(), version=1)
    learning.beaten_on_another_set(release)
    assert selectors.latest_release(project) is None
    refused = ask("POST", "models/1/endorse", {"reason": " "})
    assert refused.status_code == 422
    assert "Say why the release is offered all the same" in refused.json()["code"]
    assert engineer("POST", "models/1/endorse", {"reason": "mine"}).status_code == 404
    offered = ask("POST", "models/1/endorse", {"reason": "the test set is old"})
    assert offered.json() == {"version": 1, "reason": "the test set is old"}
    assert selectors.latest_release(project) == release
    # The first reason stays.
    assert ask("POST", "models/1/endorse", {"reason": "another"}).json()["reason"] == "the test set is old"
    assert Endorsement.objects.count() == 1
