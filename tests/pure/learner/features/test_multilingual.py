"""The encoder of many languages: rows of one record alone, near for one meaning, the same in a release."""

import json
import re

import numpy as np
import pytest

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.rules import features_for
from dpal.errors import DpalError, NotGenuine, install
from dpal.features import read_featurizer, sentences
from learner.errors import EncoderMissing
from learner.features.base import featurizer_from_json
from learner.features.choice import RecordShape
from learner.features.encoder import MultilingualEncoder, SentenceEncoder
from privacy.choices import Kind
from tests.pure.client.features.test_featurizers import same_rows, write

NAME = sentences.MULTILINGUAL
needs_multilingual = pytest.mark.skipif(
    sentences.weights_of(NAME) is None, reason="the extra `multilingual` is not installed: see docs/operations.md"
)
TEXTS = ["Schalte das Licht aus", "turn off the lights", "Wie wird das Wetter?", None, "", "Musik " * 900, "天気 42!"]


@needs_multilingual
def test_rows_depend_on_their_own_record_to_the_last_bit():
    encoder = SentenceEncoder(NAME, n_features=192)
    alone = [encoder.transform([text]).tobytes() for text in TEXTS]
    rng = np.random.default_rng(1)
    for _ in range(4):
        texts = np.array([*TEXTS, *(f"{'sehr ' * (n % 9)}laut {n}" for n in range(20))], dtype=object)
        order = rng.permutation(len(texts))
        rows = encoder.transform(texts[order].tolist())[np.argsort(order)]
        assert [row.tobytes() for row in rows[: len(TEXTS)]] == alone
    assert np.linalg.norm(encoder.transform(TEXTS).astype(np.float64), axis=1).max() <= 1


@needs_multilingual
def test_one_meaning_in_two_languages_lies_near():
    german, english, weather = SentenceEncoder(NAME).transform(TEXTS[:3])
    assert german @ english > 0.5 > 0.3 > german @ weather
    german, english, _ = SentenceEncoder().transform(TEXTS[:3])
    assert german @ english < 0.3


@needs_multilingual
def test_the_choice_has_columns_of_its_own():
    found = MultilingualEncoder.of({"text_columns": 16}).featurizer(RecordShape("text", 64))
    assert (found.dimension, found.parameters()["encoder"]) == (16, NAME)
    assert MultilingualEncoder.of({}).planned({}) == {"text_columns": 192}


@needs_multilingual
def test_a_release_names_weights_and_pieces_by_digest(tmp_path, monkeypatch):
    theirs = SentenceEncoder(NAME, n_features=8)
    stored = json.loads(theirs.to_json())["parameters"]
    assert stored["weights_sha256"] == "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
    assert stored["vocabulary_sha256"] == "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"
    assert featurizer_from_json(theirs.to_json()) == theirs
    files = write(tmp_path / "release", theirs)
    assert sentences.VOCABULARY not in files
    same_rows(read_featurizer(files), theirs, TEXTS)
    other = tmp_path / "other"
    other.write_bytes(b"other")
    for name, message in (("pieces_of", "not the vocabulary"), ("weights_of", "not the one that features")):
        with monkeypatch.context() as patched:
            patched.setattr(sentences, name, lambda encoder: other)
            with pytest.raises(NotGenuine, match=message):
                read_featurizer(files)
    monkeypatch.setitem(sentences.PACKAGES, NAME, "not_installed")
    with pytest.raises(DpalError, match=re.escape(install("multilingual"))):
        read_featurizer(files)


def test_without_the_extra_it_is_not_offered_and_says_what_is_lacking(monkeypatch):
    monkeypatch.setitem(sentences.PACKAGES, NAME, "not_installed")
    with pytest.raises(EncoderMissing, match="is not installed"):
        SentenceEncoder(NAME)
    assert "extra multilingual" in MultilingualEncoder.broken_by({"data_kind": "text"})["features"]
    offered = CATALOGUE.offered(Kind.FEATURES, oracle="trusted", arrival="pool", data_kinds=["text"])
    assert MultilingualEncoder not in offered
    assert [features_for(code) for code in ("de", "sv", "en", "")] == [MultilingualEncoder, None, None, None]
