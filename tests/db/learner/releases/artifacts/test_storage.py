import base64
import json
from pathlib import Path

import pytest
from django.core.files.storage import default_storage

from learner.errors import ArtifactCorrupt
from learner.models import FeatureMatrix, ModelRelease
from learner.releases import evaluations, storage
from learner.releases.artifacts.files import recompute_weights
from learner.releases.artifacts.settings import configuration_digest
from learner.releases.selectors import shown_configuration
from privacy.ledger.auditor.merkle import leaf_hash, verify_consistency, verify_inclusion
from privacy.ledger.auditor.notes import open_checkpoint
from privacy.ledger.checkpoints import log_of, site_key
from privacy.ledger.keys import decoded_key
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(remembered):
    return learning.begin_experts(remembered, released=True)


def test_files_open_with_the_bytes_that_were_released(release):
    assert set(release.digests) == {
        "model.skops",
        "model.onnx",
        "model.safetensors",
        "pipeline.skops",
        "thresholds.json",
        "transcript.json",
        "licences.md",
        "weights.json",
        "features.json",
        "samples.json",
        "card.md",
        "privacy.json",
        "manifest.json",
        "manifest.sig",
    }
    with storage.open_file(release=release, name="card.md") as file:
        card = file.read().decode()
    assert "20" in card
    assert "0-differential privacy" not in card


def test_its_weights_are_recomputed_from_its_transcript_alone(release):
    with storage.files_at_hand(release) as folder:
        assert recompute_weights(folder) == 0.0
        size = (folder / "transcript.json").stat().st_size
        assert json.loads((folder / "privacy.json").read_text())["transcript_bytes"] == size
        assert f"`transcript.json` has {size} bytes" in (folder / "card.md").read_text()
        weights = json.loads((folder / "weights.json").read_text())
        # A leak: what the noisy answers do not lead to.
        weights["coef"][0][0] += 1e-3 * 20
        (folder / "weights.json").write_text(json.dumps(weights))
        with pytest.raises(ArtifactCorrupt, match="something else went into them"):
            recompute_weights(folder)


def test_a_changed_file_is_not_handed_out(release):
    path = Path(default_storage.path(release.folder)) / "weights.json"
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)
    with pytest.raises(ArtifactCorrupt, match="digest"):
        storage.open_file(release=release, name="weights.json")


@pytest.fixture
def release() -> ModelRelease:
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    return learning.run_to_release(project, make_user(), version=1)


def manifest_of(release: ModelRelease) -> dict:
    with storage.open_file(release=release, name="manifest.json") as file:
        return json.loads(file.read())


def test_a_manifest_says_where_the_version_came_from(release):
    manifest, project = manifest_of(release), release.project
    # Whoever has the REST interface makes the digest of the settings again.
    assert manifest["configuration_sha256"] == configuration_digest(shown_configuration(release))
    public = FeatureMatrix.objects.get(dataset__in=evaluations.public_test_sets(project))
    assert manifest["data"]["public_sha256"] == {public.dataset.name: public.sha256}
    # Of private data there is none, keyed or not.
    assert manifest["data"].keys() == {"public_sha256"}
    text = json.dumps(manifest)
    assert all(each.sha256 not in text for each in FeatureMatrix.objects.filter(dataset__role="pool"))


def test_each_entry_of_a_release_is_proven_to_be_in_the_ledger(release):
    key = decoded_key(site_key().public_key)
    for place, account in zip(manifest_of(release)["ledger"], [release.project.pool_account], strict=True):
        checkpoint = open_checkpoint(place["checkpoint"], public_key=key)
        assert place["protects"] == account.label
        assert place["entries"]
        for entry in place["entries"]:
            stored = account.entries.get(sequence=entry["sequence"])
            assert stored.hash == entry["hash"]
            proof = [base64.b64decode(each) for each in entry["proof"]]
            leaf = leaf_hash(bytes.fromhex(entry["hash"]))
            assert verify_inclusion(leaf, entry["sequence"] - 1, checkpoint.size, proof, checkpoint.root)
        # What is in a file for ever is a checkpoint that the ledger of today must continue.
        log = log_of(account)
        now = open_checkpoint(log.checkpoint(), public_key=key)
        assert now.size > checkpoint.size
        grown = log.consistency(checkpoint.size, now.size)
        assert verify_consistency(checkpoint.size, checkpoint.root, now.size, now.root, grown)
