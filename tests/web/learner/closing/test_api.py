import pytest

from annotation.models.retention import Deletion
from learner.rounds.services import closing as deletion
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(manager):
    return learning.open_trusted(manager)


def test_archived_it_can_be_read_and_comes_out_paused(ask, project):
    assert ask("POST", "archive", {"archived": True}).json()["state"] == "archived"
    assert ask("PATCH", "retention", {"comments_days": 30}).status_code == 409
    assert ask("GET", "retention").status_code == 200
    assert ask("POST", "archive", {"archived": False}).json()["state"] == "paused"
    refused = ask("POST", "archive", {"archived": False})
    assert (refused.status_code, refused.json()["code"]) == (422, "This project is not in the archive.")


def test_deleting_wants_the_name_typed(ask, project, manager):
    refused = ask("POST", "deletion", {"typed": "another"})
    assert (refused.status_code, refused.json()["code"]) == (422, "Type the project's short name exactly.")
    assert ask("POST", "deletion", {}).status_code == 422
    assert not Deletion.objects.exists()
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=1)
    before = ask("GET", "deletion").json()
    assert (before["state"], before["releases"], before["deleted_by"], before["erasing"]) == ("active", 1, None, None)
    entries = before["entries"]
    told = ask("POST", "deletion", {"typed": f" {project.slug} ", "releases": "bury"}, key="k")
    assert told.status_code == 202
    assert (told.json()["state"], told.json()["keeps_releases"], told.json()["erasing"]) == (
        "deleted",
        False,
        "waiting",
    )
    assert ask("POST", "deletion", {"typed": f" {project.slug} ", "releases": "bury"}, key="k").json() == told.json()
    deletion.delete_project(job_id=Deletion.objects.get().job_id)
    after = ask("GET", "deletion").json()
    assert (after["erasing"], after["entries"], after["deleted_by"]) == ("done", entries, manager.username)
    assert after["erased_at"] is not None
    for path, body in (("deletion", {"typed": project.slug}), ("archive", {"archived": True})):
        refused = ask("POST", path, body)
        assert refused.status_code == 409
        assert "is deleted" in refused.json()["code"]
