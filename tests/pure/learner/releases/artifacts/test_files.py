import contextlib
import hashlib
import io
import json
import re
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import skops.io
from safetensors import safe_open

from dpal.features.table import CategoricalColumn, NumericColumn
from learner.errors import ArtifactCorrupt
from learner.features.base import TEXTS, featurizer_from_json
from learner.features.image import ImageFeaturizer
from learner.features.static_encoder import StaticEncoder
from learner.features.tabular import TabularFeaturizer
from learner.features.text import HashingTextFeaturizer
from learner.linear_model import LinearModel
from learner.releases.artifacts import files as artifacts
from learner.releases.artifacts.files import (
    REISSUED,
    read_weights,
    recompute_weights,
    reissue_artifacts,
    samples_document,
    verify_manifest,
    verify_release,
    write_artifacts,
)
from learner.releases.artifacts.signatures import Signer, check_signature, signer_key_id
from tests.transcripts import transcript_of

SIGNER = Signer.from_secret("a secret of the test, long enough to derive a key")
FEATURIZER = HashingTextFeaturizer(64)
CARD = {
    "project": "voice-intents",
    "name": "Voice intents | <b>",
    "version": 3,
    "predicts": "What does the speaker want?",
    "estimator": "logistic regression, objective perturbation",
    "questions_asked": 1200,
    "pool_size": None,
    "sampling_rate": None,
    "created_at": "2025-03-01T10:00:00Z",
    "metrics": [
        {
            "dataset": "public intents",
            "examples": 500,
            "accuracy": 0.8125,
            "interval": (0.776, 0.844),
            "macro_f1": 0.75,
            "calibration_error": 0.05,
            "constant": 0.5,
            "version_0": None,
        }
    ],
}
PRIVACY = {
    "oracle": "crowd",
    "questions_shown": True,
    "accounts": [
        {
            "protects": "the pool of voice queries",
            "filter": "pure",
            "unit": "contributor",
            "adjacency": "null",
            "limit_epsilon": 2.0,
            "limit_delta": 1e-6,
            "spent_epsilon": 0.75,
            "spent_delta": 2.5e-7,
            "limit_epsilon_when_released": 2.0,
            "limit_delta_when_released": 1e-6,
        }
    ],
    "entries": [{"id": "17", "kind": "k_anonymity_gate", "summary": "the gate", "epsilon": 0.75, "delta": 2.5e-7}],
    "heads": {"the pool of voice queries": "ab" * 32},
    "issued_at": "2026-03-01",
    "answers": "",
}

PROVENANCE = {
    "configuration_sha256": "cd" * 32,
    "data": {"public_sha256": {"public intents": "01" * 32}},
    "ledger": [{"protects": "the pool of voice queries", "checkpoint": "a note", "entries": []}],
}


def model_of(n_classes, multiclass="one_vs_rest"):
    rng = np.random.default_rng(n_classes)
    outputs = 1 if n_classes == 2 else n_classes
    # Out of alphabetical order, as projects list them.
    classes = tuple(f"class {name}" for name in "zyxwv"[:n_classes])
    return LinearModel(rng.normal(size=(outputs, 64)) * 3, rng.normal(size=outputs), classes, multiclass)


MODELS = [model_of(2), model_of(4), model_of(4, "softmax")]


def write(directory, model=MODELS[0], **changes):
    said = {"card": CARD, "privacy": PRIVACY, "provenance": PROVENANCE, "transcript": transcript_of(model)}
    return write_artifacts(directory, **{"model": model, "featurizer": FEATURIZER, "signer": SIGNER} | said | changes)


@pytest.mark.parametrize("model", MODELS, ids=["binary", "one_vs_rest", "softmax"])
def test_every_form_predicts_the_same(tmp_path, model):
    write(tmp_path / "release", model)
    X = FEATURIZER.transform([f"word{number} and word{number % 7}" for number in range(300)]).astype(np.float64)
    loaded = skops.io.load(tmp_path / "release" / "model.skops", trusted=[])
    weights = read_weights(tmp_path / "release" / "weights.json")
    assert type(loaded).__module__.startswith("sklearn.")
    np.testing.assert_allclose(loaded.predict_proba(X), weights.predict_proba(X), rtol=0, atol=1e-9)
    session = onnxruntime.InferenceSession(tmp_path / "release" / "model.onnx", providers=["CPUExecutionProvider"])
    labels, probabilities = session.run(["label", "probabilities"], {"features": X})
    np.testing.assert_allclose(probabilities, weights.predict_proba(X), rtol=0, atol=1e-9)
    with safe_open(tmp_path / "release" / "model.safetensors", framework="numpy") as tensors:
        np.testing.assert_array_equal(tensors.get_tensor("coef"), model.coef)
        np.testing.assert_array_equal(tensors.get_tensor("intercept"), model.intercept)
        assert json.loads(tensors.metadata()["classes"]) == list(model.classes)
        assert tensors.metadata()["multiclass"] == model.multiclass
        assert tensors.metadata()["featurizer"] == FEATURIZER.version
    assert session.get_modelmeta().custom_metadata_map["input"] == "features"
    assert loaded.predict(X).tolist() == weights.predict(X) == model.predict(X) == labels.tolist()
    assert len(set(weights.predict(X))) == len(model.classes)


def test_what_was_learned_is_not_released_or_taken_without_its_transcript(tmp_path):
    with pytest.raises(ValueError, match="its transcript is missing"):
        write(tmp_path / "release", transcript=None)
    assert not (tmp_path / "release").exists()
    write(tmp_path / "release")
    assert recompute_weights(tmp_path / "release") == 0.0
    (tmp_path / "release" / "transcript.json").unlink()
    with pytest.raises(ArtifactCorrupt, match="transcript of its training is missing"):
        recompute_weights(tmp_path / "release")


def test_each_part_has_its_licence(tmp_path):
    digests = write(tmp_path / "release")
    told = (tmp_path / "release" / "licences.md").read_text()
    for name in digests.keys() - {"manifest.json", "manifest.sig"}:
        assert f"| `{name}` | " in told
    write(tmp_path / "table", featurizer=StaticEncoder(n_features=64))
    told = (tmp_path / "table" / "licences.md").read_text()
    assert "| `encoder.npz` | Apache-2.0 and the WordNet 3.0 licence" in told
    assert "WordNet 3.0 Copyright" in (tmp_path / "table" / "encoder.md").read_text()


def test_features_are_rebuilt_from_their_file(tmp_path):
    write(tmp_path / "release")
    stored = json.loads((tmp_path / "release" / "features.json").read_text())
    assert featurizer_from_json(json.dumps(stored)) == FEATURIZER
    assert stored["version"] == FEATURIZER.version


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(tmp_path):
    """Memory addresses and the clock would differ there."""
    script = (
        "import hashlib, numpy as np\n"
        "from learner.releases.artifacts.files import canonical_skops, onnx_bytes, pipeline_bytes\n"
        "from learner.releases.artifacts.files import safetensors_bytes, skops_bytes, sklearn_estimator\n"
        "from learner.linear_model import LinearModel\n"
        "filler = [object() for _ in range(1000)]\n"
        "model = LinearModel(np.arange(12.0).reshape(3, 4), np.zeros(3), ('c', 'b', 'a'))\n"
        "graph = onnx_bytes(sklearn_estimator(model), model, featurizer='f')\n"
        "graph += safetensors_bytes(model, featurizer='f')\n"
        "raw = {'described': b'{}', 'attachments': {'words.json': b'{}'}}\n"
        "graph += canonical_skops(pipeline_bytes(sklearn_estimator(model), **raw))\n"
        "print(hashlib.sha256(skops_bytes(model) + graph).hexdigest())\n"
    )
    runs = {
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 1


def test_manifest_holds_for_what_was_written(tmp_path):
    digests = write(tmp_path / "release")
    assert verify_manifest(tmp_path / "release") == digests


@pytest.mark.parametrize(
    "name", ["model.skops", "model.onnx", "weights.json", "features.json", "samples.json", "card.md", "privacy.json"]
)
def test_tampering_is_noticed(tmp_path, name):
    write(tmp_path / "release")
    path = tmp_path / "release" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ArtifactCorrupt, match=re.escape(name)):
        verify_manifest(tmp_path / "release")


def test_missing_and_extra_files_are_noticed(tmp_path):
    write(tmp_path / "release")
    (tmp_path / "release" / "card.md").rename(tmp_path / "release" / "other.md")
    with pytest.raises(ArtifactCorrupt, match=r"card\.md, other\.md"):
        verify_manifest(tmp_path / "release")


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    written = []

    def full_disk(self, target):
        written.extend(entry.name for entry in self.iterdir())
        raise OSError("no space left")

    monkeypatch.setattr(artifacts.Path, "rename", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write(tmp_path / "release")
    assert len(written) == 14
    assert list(tmp_path.iterdir()) == []


def card_of(tmp_path, **changes):
    write(tmp_path / "release", **changes)
    return (tmp_path / "release" / "card.md").read_text(encoding="utf-8")


def test_card_states_the_limit_as_the_guarantee_and_the_spending_beside_it(tmp_path):
    text = card_of(tmp_path)
    assert "(2, 1e-06)-differential privacy for two data sets that differ in one contributor" in text
    assert "| the pool of voice queries | contributor | pure | 2, 1e-06 | 0.75, 2.5e-07 |" in text
    assert "| 17 | k\\_anonymity\\_gate | the gate | 0.75 | 2.5e-07 |" in text
    assert "| public intents | 500 | 0.8125 (0.7760 to 0.8440) | 0.5000 | none | 0.7500 | 0.0500 |" in text
    assert "Not covered:" in text


def test_card_names_cannot_act_as_markup(tmp_path):
    assert "# Voice intents \\| \\<b\\>, version 3" in card_of(tmp_path)


def test_card_front_matter_is_complete(tmp_path):
    lines = card_of(tmp_path).split("\n---\n")[0].removeprefix("---\n").splitlines()
    fields = {line.split(": ", 1)[0]: json.loads(line.split(": ", 1)[1]) for line in lines}
    assert fields["library_name"] == "sklearn"
    assert fields["pipeline_tag"] == "text-classification"
    assert fields["privacy"] == [{"epsilon": 2.0, "delta": 1e-6, "unit": "contributor", "adjacency": "null"}]
    assert fields["license"] == "unknown"
    assert fields["metrics"] == ["accuracy", "f1"]
    (indexed,) = fields["model-index"]
    assert indexed["name"] == CARD["name"]
    (result,) = indexed["results"]
    assert result["task"] == {"type": "text-classification"}
    assert result["dataset"] == {"type": "public-test-set", "name": "public intents"}
    assert [(one["type"], one["value"]) for one in result["metrics"]][:2] == [("accuracy", 0.8125), ("f1", 0.75)]


def test_privacy_json_says_who_is_protected_from_whom_how_and_by_how_much(tmp_path):
    write(tmp_path / "release")
    body = json.loads((tmp_path / "release" / "privacy.json").read_text(encoding="utf-8"))
    assert body["schema"] == "dpal-privacy/2"
    assert body["deployment"]["model"] == "central"
    assert body["deployment"]["mechanisms"] == [{"name": "k_anonymity_gate", "uses": 1}]
    assert "not trusted" in body["deployment"]["trust"]
    (account,) = body["accounts"]
    assert account["unit_of_privacy"] == "contributor"
    assert account["neighbouring_data_sets"].startswith("two data sets that differ in one contributor")
    assert account["flavour"] == "approximate DP by a pure filter"
    assert account["guarantee"] == {"epsilon": 2.0, "delta": 1e-6}
    assert account["spent_when_released"] == {"epsilon": 0.75, "delta": 2.5e-7}
    assert account["chain_head"] == "ab" * 32
    assert body["entries"] == PRIVACY["entries"]
    assert any("database" in sentence for sentence in body["not_covered"])
    assert body["covered"]


def test_loading_instructions_run(tmp_path, monkeypatch):
    text = card_of(tmp_path)
    script = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    monkeypatch.chdir(tmp_path / "release")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(script, "card.md", "exec"), {})
    assert "class" in output.getvalue()


class TestSignature:
    """Digests say that nothing changed; the signature says whose release it is."""

    @pytest.fixture
    def release(self, tmp_path):
        self.digests = write(tmp_path / "release")
        return tmp_path / "release"

    def test_a_genuine_release(self, release):
        assert verify_release(release, public_key=SIGNER.public_key) == self.digests

    def test_a_manifest_made_anew_for_a_changed_file_is_refused(self, release):
        forger = Signer.from_secret("somebody else's secret, which is long enough too")
        (release / "card.md").write_text("epsilon 0.001")
        manifest = json.loads((release / "manifest.json").read_text())
        body = (release / "card.md").read_bytes()
        manifest["files"]["card.md"] = {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}
        renewed = artifacts.json_bytes(manifest)
        (release / "manifest.json").write_bytes(renewed)
        with pytest.raises(ArtifactCorrupt, match=r"does not fit manifest\.json"):
            verify_release(release, public_key=SIGNER.public_key)
        (release / "manifest.sig").write_bytes(artifacts.json_bytes(forger.sign(renewed)))
        with pytest.raises(ArtifactCorrupt, match="another key"):
            verify_release(release, public_key=SIGNER.public_key)

    def test_a_forger_cannot_claim_the_trusted_key(self):
        forger = Signer.from_secret("somebody else's secret, which is long enough too")
        claimed = {**forger.sign(b"manifest"), "public_key": SIGNER.public_key}
        with pytest.raises(ArtifactCorrupt, match="does not fit"):
            check_signature(b"manifest", json.dumps(claimed).encode(), public_key=SIGNER.public_key)

    @pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"signature": "%%%", "public_key": ""}', b"\xff"])
    def test_what_cannot_be_read_is_refused(self, release, content):
        (release / "manifest.sig").write_bytes(content)
        with pytest.raises(ArtifactCorrupt, match=r"manifest\.sig"):
            verify_release(release, public_key=SIGNER.public_key)

    @pytest.mark.parametrize("key", ["", "not base64!", "AAAA"])
    def test_a_key_that_is_none_is_refused(self, release, key):
        with pytest.raises(ArtifactCorrupt, match="32 bytes"):
            signer_key_id(key)

    def test_a_release_without_a_signature_is_refused(self, release):
        (release / "manifest.sig").unlink()
        with pytest.raises(ArtifactCorrupt, match="lacks"):
            verify_release(release, public_key=SIGNER.public_key)

    def test_a_release_issued_anew_changes_what_it_promises_alone(self, tmp_path, release):
        terms = PRIVACY["accounts"][0] | {"limit_epsilon": 8.0}
        promise = PRIVACY | {"accounts": [terms], "issued_at": "2026-04-02"}
        issued = tmp_path / "issued"
        digests = reissue_artifacts(release, issued, card=CARD, privacy=promise, signer=SIGNER)
        assert verify_release(issued, public_key=SIGNER.public_key) == digests
        assert {name for name in digests if digests[name] != self.digests[name]} == REISSUED
        card = (issued / "card.md").read_text()
        assert "(8, 1e-06)-differential privacy" in card
        assert "as it stood on 2026-04-02" in card
        assert "When the version was released, the limit was (2, 1e-06)." in card
        (release / "weights.json").write_text("{}")
        with pytest.raises(ArtifactCorrupt, match="do not match"):
            reissue_artifacts(release, tmp_path / "another", card=CARD, privacy=promise, signer=SIGNER)
        assert not (tmp_path / "another").exists()

    def test_a_signer_shows_no_secret(self):
        assert repr(SIGNER) == f"Signer({signer_key_id(SIGNER.public_key)})"

    def test_a_short_secret_is_refused(self):
        with pytest.raises(ValueError, match="got 5"):
            Signer.from_secret("short")


PIXELS = ImageFeaturizer(6, 5, pooled=(3, 2), centered=True)
COLOURS = ImageFeaturizer(6, 5, pooled=(3, 2), centered=True, hues=(2, 1))
FEATURIZERS = [
    HashingTextFeaturizer(32),
    HashingTextFeaturizer(32, normalizer="L4"),
    StaticEncoder(n_features=16),
    TabularFeaturizer([NumericColumn("age", 0, 100, "unit"), CategoricalColumn("kind", ["a", "b"])]),
    PIXELS,
    COLOURS,
]


def model_for(featurizer) -> LinearModel:
    rng = np.random.default_rng(3)
    return LinearModel(rng.normal(size=(3, featurizer.dimension)) * 4, rng.normal(size=3), ("a", "b", "c"))


@pytest.mark.parametrize("featurizer", FEATURIZERS, ids=lambda one: f"{one.kind}-{one.parameters().get('normalizer')}")
def test_samples_are_what_the_model_says_of_them(featurizer):
    model = model_for(featurizer)
    told = json.loads(json.dumps(samples_document(model, featurizer)))
    is_image = "image" in featurizer.kind
    records = np.array(told["records"], dtype=np.uint8) if is_image else told["records"]
    rows = featurizer.transform(records)
    assert len(np.unique(rows, axis=0)) > 1
    assert told["labels"] == model.predict(rows)
    np.testing.assert_array_equal(told["probabilities"], model.predict_proba(rows))


def test_samples_follow_from_public_parameters_alone():
    rows = FEATURIZERS[3].example_records()
    assert rows[:3] == [{"age": 0, "kind": "a"}, {"age": 100, "kind": "b"}, {"age": 50.0, "kind": "a"}]
    assert {"age": None, "kind": None} in rows
    assert FEATURIZERS[0].example_records() == list(TEXTS)


def test_a_table_travels_with_its_licence_under_the_digest_that_is_named():
    encoder = StaticEncoder(n_features=16)
    files = encoder.attachments()
    assert set(files) == {"encoder.npz", "encoder.md"}
    assert hashlib.sha256(files["encoder.npz"]).hexdigest() == encoder.parameters()["table_sha256"]
    assert b"Princeton University" in files["encoder.md"]
