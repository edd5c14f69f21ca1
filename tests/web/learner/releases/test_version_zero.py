import hashlib
import json

import pytest
from django.conf import settings
from django.core.management import call_command

from annotation.models import Role
from dpal.manifest import verify_folder
from dpal.model import Model
from learner.releases import storage
from learner.releases.artifacts.files import verify_release
from learner.releases.cards.described import MARK
from learner.releases.evaluation_out import score_out
from learner.releases.model_out import described_out
from learner.releases.services import described
from privacy.ledger.models import LedgerEntry
from tests import learning
from tests.clients import browser_of
from tests.factories import make_user
from tests.web.learner.test_outside import client_of

pytestmark = pytest.mark.django_db(transaction=True)
SHOWN = "ε 0: from class descriptions alone, no private row read."
WORDS = ["fruit: {apple|pear|plum|grape|melon|peach}", "tool: {hammer|saw|drill|wrench|chisel|plane}"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "VAR_DIR", tmp_path)
    return learning.open_secret(make_user(), features="planned", text_columns=16, class_descriptions=WORDS)


def test_its_files_are_those_of_a_release_and_nothing_is_charged(project, tmp_path):
    learning.fill_trusted(project)
    before = LedgerEntry.objects.count()
    client = client_of(project, Role.ENGINEER)
    address = f"/api/v1/projects/{project.slug}/models/0"
    told = client.get(address).json()
    assert (told["version"], told["estimator"], told["questions_asked"], told["lineage"]) == (0, MARK, 0, [])
    assert [(one["limit_epsilon"], one["limit_delta"]) for one in told["guarantee"]] == [(0, 0)]
    (measured,) = told["evaluations"]
    assert measured["correct"] >= 50  # of 60
    found = described.described_release(project)
    assert described_out(found, may_plan=False)["files"] == told["files"]
    assert score_out(found.scores[0], may_plan=False)["accuracy"] == measured["accuracy"]
    folder = tmp_path / "download"
    folder.mkdir()
    for one in told["files"]:
        body = b"".join(client.get(one["url"]).streaming_content)
        assert hashlib.sha256(body).hexdigest() == one["sha256"]
        (folder / one["name"]).write_bytes(body)
    # As the product checks a release, and as the client does.
    verify_release(folder, public_key=storage.signer().public_key)
    manifest, files = verify_folder(folder, public_key=storage.signer().public_key)
    model = Model(manifest.project, manifest.version, files)
    model.check()
    assert model.predict(["a pear and a plum", "drill and saw"]).tolist() == ["fruit", "tool"]
    assert (model.guarantee.limit.epsilon, model.guarantee.limit.delta) == (0, 0)
    assert MARK.split(",")[1] in model.card
    assert json.loads((folder / "manifest.json").read_text())["release"] == {"project": project.slug, "version": 0}
    assert LedgerEntry.objects.count() == before
    call_command("audit_ledger")


def test_pages_offer_it_before_any_release(project):
    browser = browser_of(project.memberships.get(role=Role.MANAGER).user)
    base = f"/projects/{project.slug}"
    for page in ("overview", "releases"):
        shown = browser.get(f"{base}/{page}/").content.decode()
        assert f"{base}/releases/0/" in shown
        assert SHOWN in shown
    page = browser.get(f"{base}/releases/0/").content.decode()
    assert SHOWN in page
    assert f"{base}/releases/0/files/manifest.json" in page
    sent = browser.get(f"{base}/releases/0/files/card.md")
    assert b"".join(sent.streaming_content).decode() == described.described_release(project).card
    assert browser.get(f"{base}/releases/0/files/other.txt").status_code == 404
