import hashlib
import re

import numpy as np
import pytest
from django.test import Client

from annotation.models import Role
from annotation.people.services import members
from learner.releases import storage
from learner.releases.services import versions
from learner.rounds.services import selection
from tests import learning
from tests.clients import browser_of, program_of
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(remembered):
    return remembered("two releases of experts", lambda: learning.released_experts(2))


def client_of(project, role: str, scope: str = "models:read") -> Client:
    person = make_user()
    members.add_member(project=project, user=person, role=role)
    return program_of(person, scope)


def test_models_are_listed_newest_first_with_their_guarantee(project):
    body = client_of(project, Role.ENGINEER).get(f"/api/v1/projects/{project.slug}/models").json()
    assert [model["version"] for model in body] == [2, 1]
    newest = body[0]
    assert newest["guarantee"][0]["limit_epsilon"] == 20.0
    assert newest["guarantee"][0]["spent_epsilon"] > 4.0
    assert newest["questions_asked"] == 24
    assert [model["rounds"] for model in body] == [[1, 2], [1]]
    measured = newest["evaluations"][0]
    assert measured["accuracy"] == measured["correct"] / measured["examples"]
    assert measured["measures"]["macro_f1"]["low"] <= measured["measures"]["macro_f1"]["value"]
    assert measured["no_privacy"]["accuracy"] is None
    assert measured["no_privacy"]["said"].startswith("No simulation for these settings yet")
    assert {"from", "to", "correct"} <= set(measured["measures"]["reliability"][0])
    assert newest["checks"] == dict.fromkeys(("entries", "ledger", "mechanism", "files"), "passed")
    assert newest["released_at"] >= newest["created_at"]
    assert newest["environment"]["dpal"]
    assert newest["public_key"] == storage.signer().public_key
    assert newest["configuration"]["selection"] == "top_c"
    assert "guidelines" not in newest["configuration"]
    low, high = measured["interval"]
    assert low <= measured["accuracy"] <= high
    assert {entry["kind"] for entry in newest["lineage"]} == {"commit"}
    assert f"release:{newest['version']}" in {entry["subject"] for entry in newest["lineage"]}


def test_latest_is_the_newest_that_is_not_retired(project):
    client = client_of(project, Role.ENGINEER)
    address = f"/api/v1/projects/{project.slug}/models"
    assert client.get(f"{address}/latest").json()["version"] == 2
    versions.retire_release(release=project.releases.get(version=2), reason="wrong guideline")
    assert client.get(f"{address}/latest").json()["version"] == 1
    assert client.get(f"{address}/2").json()["retired_reason"] == "wrong guideline"
    for absent in ("3", "one", "1²"):
        assert client.get(f"{address}/{absent}").status_code == 404
    # The words about the classes are version 0, and this project has none.
    assert client.get(f"{address}/0").status_code == 409


def test_a_file_downloads_once_and_is_then_known_by_its_digest(project):
    client = client_of(project, Role.MANAGER)
    listed = client.get(f"/api/v1/projects/{project.slug}/models/1").json()["files"]
    for file in listed:
        response = client.get(file["url"])
        assert hashlib.sha256(response.getvalue()).hexdigest() == file["sha256"]
        assert response["ETag"] == f'"{file["sha256"]}"'
        again = client.get(file["url"], headers={"If-None-Match": f'"other", "{file["sha256"]}"'})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get(f"/api/v1/projects/{project.slug}/models/1/files/absent").status_code == 404


def test_a_corrupt_file_is_a_fault_and_no_download(project):
    release = project.releases.get(version=1)
    path = storage._path_of(release.folder) / "weights.json"
    path.write_text("{}")
    answer = client_of(project, Role.ENGINEER).get(f"/api/v1/projects/{project.slug}/models/1/files/weights.json")
    assert answer.status_code == 500
    assert answer["Content-Type"] == "application/problem+json"
    assert "digest" in answer.json()["detail"]


def told_outside(project, blocks, monkeypatch) -> list[str]:
    """Run a project of secret blocks with these coins; return what routes, page and card say, digests and times off."""
    monkeypatch.setattr(selection, "draw_blocks", lambda n, rate, rng: np.full(n, blocks, dtype=np.uint8))
    learning.upload(project, [[text] for text in learning.sentences(20)], ["text"])
    learning.run_to_release(project, make_user(), version=1)
    engineer = client_of(project, Role.ENGINEER)
    shown = [engineer.get(f"/api/v1/projects/{project.slug}/{what}").json() for what in ("models", "rounds")]
    (model,), (chosen,) = shown
    # Whole seconds, both of them.
    assert chosen["closes_at"] >= chosen["created_at"]
    assert {len(file.pop("sha256")) for file in model["files"]} == {64}
    model.pop("created_at")
    model.pop("released_at")
    for moment in ("created_at", "finished_at", "closes_at"):
        chosen.pop(moment)
    for line in model["lineage"]:
        line.pop("hash")
    person = make_user()
    members.add_member(project=project, user=person, role=Role.ENGINEER)
    pages = browser_of(person)
    statement = pages.get(f"/projects/{project.slug}/budget/").content.decode()
    lines = [line for line in re.findall(r"<td[^>]*>(.*?)</td>", statement, re.DOTALL) if "<time" not in line]
    assert "secret choice" in " ".join(lines)
    with storage.open_file(release=project.releases.get(), name="card.md") as file:
        card = file.read().decode()
    return [str(part).replace(project.slug, "").replace(project.name, "") for part in (model, chosen, lines, card)]


def test_what_leaves_is_the_same_whether_everything_was_asked_or_nothing(monkeypatch):
    owner = make_user()
    everything = told_outside(learning.open_secret(owner), 1, monkeypatch)
    nothing = told_outside(learning.open_secret(owner), 0, monkeypatch)
    assert everything == nothing
    assert "'questions_asked': None" in nothing[0]
    assert "'selected': None" in nothing[1]
    assert "'pool_size': 20" in nothing[1]
