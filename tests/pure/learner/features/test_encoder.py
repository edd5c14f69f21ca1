"""The sentence encoder: the published network, rows of one record alone, weights by reference and digest.

A tiny encoder with random weights stands for the published one; what needs the published weights says so when they are
not installed.
"""

import importlib
import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from dpal.errors import NotGenuine
from learner.errors import EncoderMissing
from learner.features import encoder as module
from learner.features.base import featurizer_from_json
from learner.features.encoder import SentenceEncoder, Transformer, installed
from tests.pure.learner.features.encoder_folder import HEADS, LAYERS, WIDTH, WORDS, reference_vector, write_package

TEXTS = ["play some jazz", "lights off", "PLAY some musics", None, "", "jazz " * 300, "play some jazz"]
needs_weights = pytest.mark.skipif(not installed(), reason="the published weights need the extra `text`")


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    write_package(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(module.PACKAGES, "tiny", "tiny_encoder")
    importlib.invalidate_caches()
    return "tiny"


def test_the_network_is_the_published_one(tmp_path):
    folder = write_package(tmp_path)
    weights = load_file(folder / "model.safetensors")
    transformer = Transformer.from_folder(folder)
    assert (transformer.width, transformer.layers, transformer.heads) == (WIDTH, LAYERS, HEADS)
    tokens = np.random.default_rng(1).integers(len(WORDS), size=(5, 7))
    expected = [reference_vector(weights, row) for row in tokens]
    np.testing.assert_allclose(transformer.mean_vectors(tokens), expected, rtol=2e-4, atol=2e-4)


def test_another_kind_of_network_is_refused(tmp_path):
    folder = write_package(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "gpt2"}))
    with pytest.raises(NotGenuine, match="type 'gpt2'"):
        Transformer.from_folder(folder)


def test_rows_have_the_bound_and_depend_on_their_own_record_to_the_last_bit(tiny):
    encoder = SentenceEncoder(tiny, norm_bound=0.7)
    rows = encoder.transform(TEXTS)
    assert rows.shape == (len(TEXTS), WIDTH)
    assert np.linalg.norm(rows.astype(np.float64), axis=1).max() <= 0.7
    apart = np.concatenate([encoder.transform([text]) for text in TEXTS])
    assert (rows == apart).all()
    assert (rows[0] == rows[6]).all()
    assert not (rows[0] == rows[1]).all()
    assert encoder.transform([]).shape == (0, WIDTH)


def test_texts_that_the_gate_counts_together_share_a_row(tiny):
    rows = SentenceEncoder(tiny, normalizer="L1").transform(["play some jazz", "PLAY some jazz!"])
    assert (rows[0] == rows[1]).all()


def test_a_public_projection_narrows_the_rows(tiny):
    encoder = SentenceEncoder(tiny, n_features=3)
    rows = encoder.transform(TEXTS)
    assert rows.shape == (len(TEXTS), 3)
    assert (rows == np.concatenate([encoder.transform([text]) for text in TEXTS])).all()
    other = SentenceEncoder(tiny, n_features=3, projection_seed=5)
    assert other.version != encoder.version
    assert not np.allclose(other.transform(TEXTS), rows)


def test_the_json_names_the_weights_and_their_digest_and_holds_none(tiny):
    encoder = SentenceEncoder(tiny, n_features=3)
    stored = json.loads(encoder.to_json())
    assert stored["parameters"]["encoder"] == tiny
    assert len(stored["parameters"]["weights_sha256"]) == 64
    assert len(encoder.to_json()) < 400
    again = featurizer_from_json(encoder.to_json())
    assert again == encoder
    assert (again.transform(TEXTS) == encoder.transform(TEXTS)).all()


def test_other_weights_under_the_same_name_are_refused(tiny, tmp_path, monkeypatch):
    stored = SentenceEncoder(tiny).to_json()
    write_package(tmp_path / "other", seed=1)
    monkeypatch.syspath_prepend(str(tmp_path / "other"))
    importlib.invalidate_caches()
    with pytest.raises(EncoderMissing, match="digest"):
        featurizer_from_json(stored)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(module.PACKAGES, "absent", "no_such_package")
    assert not installed("absent")
    with pytest.raises(EncoderMissing, match="install the extra `text`"):
        SentenceEncoder("absent")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": "unheard of"}, "encoder must be one of"),
        ({"n_features": 1}, "n_features"),
        ({"n_features": 9}, "n_features"),
        ({"projection_seed": -1}, "projection_seed"),
        ({"norm_bound": 0.0}, "norm_bound"),
    ],
)
def test_parameters_out_of_range(tiny, options, message):
    with pytest.raises(ValueError, match=message):
        SentenceEncoder(**({"encoder": tiny} | options))


@needs_weights
def test_published_weights_bring_paraphrases_together():
    encoder = SentenceEncoder()
    rows = encoder.transform(["turn off the lights", "switch the lamp off", "what is the weather in oslo"])
    assert rows.shape == (3, 384)
    likeness = rows @ rows.T
    assert likeness[0, 1] > 0.5 > 0.3 > likeness[0, 2]


@needs_weights
def test_published_weights_give_what_the_reference_implementation_gives():
    torch = pytest.importorskip("torch", reason="the second implementation needs torch, of the extra `deep`")
    transformers = pytest.importorskip("transformers")
    folder = module._folder_of("all-minilm-l6-v2")
    network = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    texts = ["play some jazz", "what is the weather in oslo tomorrow", "a" * 200]
    for text in texts:
        with torch.no_grad():
            hidden = network(**tokenizer(text, return_tensors="pt", truncation=True, max_length=128)).last_hidden_state
        expected = hidden[0].mean(axis=0).numpy()
        found = SentenceEncoder(normalizer="L0").transform([text])[0]
        np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=2e-5)
