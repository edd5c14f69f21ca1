"""The sentence encoder: rows of one record alone, weights by reference and digest."""

import json
import time

import numpy as np
import pytest

from dpal.features import sentences
from learner.errors import EncoderMissing
from learner.features.base import featurizer_from_json
from learner.features.encoder import SentenceEncoder, network

TEXTS = ["play some jazz", "lights off", "PLAY some musics", None, "", "jazz " * 300, "play some jazz", "東京 42!"]
COMPANY = [f"{'very ' * (number % 9)}loud music number {number}" for number in range(60)]


@pytest.mark.parametrize("options", [{}, {"n_features": 3}, {"normalizer": "L0"}])
def test_rows_depend_on_their_own_record_to_the_last_bit(options):
    encoder = SentenceEncoder(**options)
    alone = b"".join(encoder.transform([text]).tobytes() for text in TEXTS)
    rng = np.random.default_rng(1)
    for size in (0, 1, 5, 11, 60):
        texts = np.array([*TEXTS, *COMPANY[:size]], dtype=object)
        order = rng.permutation(len(texts))
        rows = encoder.transform(texts[order].tolist())[np.argsort(order)]
        assert rows[: len(TEXTS)].tobytes() == alone


def test_rows_have_the_bound():
    rows = SentenceEncoder(norm_bound=0.7).transform(TEXTS).astype(np.float64)
    assert rows.shape == (len(TEXTS), 256)
    assert network().width == 384
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 0.7, rtol=1e-5)
    assert np.linalg.norm(rows, axis=1).max() <= 0.7
    assert (rows[0] == rows[6]).all()
    assert not (rows[0] == rows[1]).all()
    assert SentenceEncoder().transform([]).shape == (0, 256)


def test_every_block_of_one_length_has_one_shape(monkeypatch):
    found = network()
    shapes, session = set(), found._session

    class Watched:
        def run(self, outputs, given):
            shapes.update({name: each.shape for name, each in given.items()}.values())
            return session.run(outputs, given)

    monkeypatch.setattr(found, "_session", Watched())
    found.rows([*COMPANY, "jazz " * 300])
    lengths = [length for _, length in shapes]
    assert len(lengths) == len(set(lengths)) > 5


def test_texts_that_the_gate_counts_together_share_a_row():
    rows = SentenceEncoder(normalizer="L1").transform(["play some jazz", "PLAY some jazz!"])
    assert (rows[0] == rows[1]).all()


def test_columns_are_principal_directions_of_public_texts():
    """Fewer columns are the first of more, and say more of everyday sentences than as many of any others."""
    few, many = (SentenceEncoder(n_features=n).transform(COMPANY).astype(np.float64) for n in (64, 256))
    kept = np.linalg.norm(many[:, :64], axis=1)
    np.testing.assert_allclose(many[:, :64] / kept[:, None], few, atol=1e-6)
    assert (kept**2).mean() > 2 * 64 / 256


def test_the_json_names_the_weights_and_their_digest_and_holds_none():
    encoder = SentenceEncoder(n_features=3)
    stored = json.loads(encoder.to_json())["parameters"]
    assert stored["encoder"] == "all-minilm-l6-v2-int8"
    assert stored["weights_sha256"] == "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
    assert len(encoder.to_json()) < 600
    again = featurizer_from_json(encoder.to_json())
    assert again == encoder
    assert (again.transform(TEXTS) == encoder.transform(TEXTS)).all()


@pytest.mark.parametrize("name", ["weights_sha256", "vocabulary_sha256", "directions_sha256"])
def test_other_weights_under_the_same_name_are_refused(name):
    stored = json.loads(SentenceEncoder().to_json())
    stored["parameters"][name] = "0" * 64
    with pytest.raises(EncoderMissing, match="digest"):
        featurizer_from_json(json.dumps(stored))


def test_without_the_package_the_error_names_the_encoder(monkeypatch):
    monkeypatch.setitem(sentences.PACKAGES, "absent", "no_such_package")
    with pytest.raises(EncoderMissing, match="absent is not installed"):
        SentenceEncoder("absent")


def test_paraphrases_lie_near():
    rows = SentenceEncoder().transform(["turn off the lights", "switch the lamp off", "what is the weather in oslo"])
    likeness = rows @ rows.T
    assert likeness[0, 1] > 0.5 > 0.3 > likeness[0, 2]


def test_speed():
    """300 short texts a CPU second are promised; a fifth of them ends the test on the slowest machine."""
    encoder = SentenceEncoder()
    encoder.transform(TEXTS)
    started = time.process_time()
    encoder.transform([f"set an alarm for seven and play song {number}" for number in range(300)])
    assert time.process_time() - started < 5
