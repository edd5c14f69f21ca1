import time

import numpy as np
import pytest

from dpal.features.word_vectors import BLOCK_TEXTS
from learner.errors import EncoderMissing
from learner.features.base import featurizer_from_json
from learner.features.distil import distil
from learner.features.static_encoder import StaticEncoder, read_table

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "some", "jazz", "music", "##s", "lights", "off"]
TEXTS = ["play some jazz", "lights off", "PLAY some Jazz!", None, "", "jazz " * 300, "what is my balance"]


def test_a_row_is_the_sum_of_its_pieces_at_the_bound():
    table = read_table("minilm-static")
    pieces = table.tokenizer.encode("play some jazz").ids
    expected = sum(table.scales[piece] * table.vectors[piece, :40].astype(float) for piece in pieces)
    row = StaticEncoder(n_features=40, norm_bound=0.5).transform(["play some jazz"])[0]
    np.testing.assert_allclose(row, expected / np.linalg.norm(expected) * 0.5, rtol=1e-5, atol=1e-7)


def test_rows_are_the_same_bits_in_any_company():
    encoder = StaticEncoder()
    rows = encoder.transform(TEXTS)
    assert (rows == np.concatenate([encoder.transform([text]) for text in TEXTS])).all()
    assert (rows == encoder.transform(TEXTS[::-1])[::-1]).all()
    assert (rows[0] == rows[2]).all()
    assert not rows[3].any()
    assert not rows[4].any()


def test_a_long_batch_is_cut_into_blocks_without_a_trace():
    encoder = StaticEncoder(n_features=8)
    rows = encoder.transform(["lights off"] * BLOCK_TEXTS + TEXTS)
    assert (rows[BLOCK_TEXTS:] == encoder.transform(TEXTS)).all()


def test_like_meanings_lie_near():
    rows = StaticEncoder().transform(["what is my bank balance", "how much money is in my account", "play some jazz"])
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2


def test_columns_are_principal_directions_of_the_public_corpus():
    encoder = StaticEncoder()
    variances = encoder.public_moments.diagonal()
    assert variances[:64].sum() > 0.5
    assert (np.diff(variances[::32]) < 0).all()
    few = StaticEncoder(n_features=64)
    assert few.public_moments.shape == (64, 64)
    assert np.trace(few.public_moments) == pytest.approx(1)
    assert few.public_mean.shape == (64,)


def test_another_table_than_the_one_named_is_refused():
    encoder = StaticEncoder()
    assert featurizer_from_json(encoder.to_json()) == encoder
    with pytest.raises(EncoderMissing, match="digest"):
        featurizer_from_json(encoder.to_json().replace(encoder.table_sha256, "0" * 64))


def test_speed():
    """8,000 short texts a second and core are promised; a tenth of them ends the test on the slowest machine."""
    words = ["play", "some", "jazz", "what", "is", "the", "weather", "tomorrow", "set", "an", "alarm", "for", "seven"]
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(words, 10)) + f" {number}" for number in range(8_000)]
    encoder = StaticEncoder()
    encoder.transform(texts[:10])
    started = time.process_time()
    encoder.transform(texts)
    assert time.process_time() - started < 10


class Embeddings:
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 8))

    def rows_of_pieces(self, texts):
        return np.array([self.vectors[list(text)].mean(axis=0) for text in texts])


def test_a_table_is_made_from_a_model_and_wordnet(tmp_path):
    """A tiny network and a tiny WordNet: the fitted sums must come nearer to the network than a random table does."""
    wordnet = tmp_path / "wordnet"
    wordnet.mkdir()
    rng = np.random.default_rng(2)
    spoken = ["play", "some", "jazz", "music", "musics", "lights", "off"]
    lines = [
        f'0000 00 n 01 play 0 000 | {" ".join(rng.choice(spoken, 4))}; "{" ".join(rng.choice(spoken, 5))}"  '
        for _ in range(300)
    ]
    for part in ("noun", "verb", "adj", "adv"):
        (wordnet / f"data.{part}").write_text("  1 the licence\n" + "\n".join(lines if part == "noun" else []) + "\n")
    made = distil(Embeddings(), WORDS, wordnet)
    assert made["vectors"].shape == (len(WORDS), 8)
    assert made["vectors"].dtype == np.int8
    assert np.abs(made["vectors"]).max() == 127
    assert bytes(made["vocabulary"]).decode().split("\n") == WORDS
    assert np.trace(made["moments"]) == pytest.approx(1, abs=1e-5)
    assert (np.diff(made["moments"].diagonal()) <= 1e-2).all()
