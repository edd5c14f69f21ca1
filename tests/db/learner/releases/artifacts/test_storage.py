import json
from pathlib import Path

import pytest
from django.core.files.storage import default_storage

from learner.errors import ArtifactCorrupt
from learner.releases import storage
from learner.releases.artifacts.files import recompute_weights
from tests import learning

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
