import base64
import json

import pytest

from learner.models import FeatureMatrix, ModelRelease
from learner.releases import evaluations, storage
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
