import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpal.errors import DpalError, NotGenuine, install
from dpal.features import read_featurizer, sentences
from dpal.model import Model
from learner.features.encoder import SentenceEncoder
from tests.pure.client.features.test_featurizers import same_rows, write

TEXTS = [
    "play some jazz",
    "",
    "PLAY [MASK] jazz[SEP]lights",
    "jazz " * 300,
    "東京 jazzs!",
    "ja\ue000zz \U0010fffd lights",
    "re\u0301sume\u0301",
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "options", [{}, {"normalizer": "L0"}, {"n_features": 3}, {"normalizer": "L3", "norm_bound": 0.5}]
)
def test_texts_become_the_rows_of_the_site(tmp_path, options):
    theirs = SentenceEncoder(**options)
    ours = read_featurizer(write(tmp_path / "release", theirs))
    same_rows(ours, theirs, TEXTS)

    @given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=1, max_size=5))
    @settings(max_examples=8, deadline=None)
    def agree(texts):
        same_rows(ours, theirs, texts)

    agree()


def test_a_release_is_checked_and_makes_a_pipeline(tmp_path):
    files = write(tmp_path / "release", SentenceEncoder(n_features=8))
    model = Model("p", 1, files)
    model.check()
    assert model.pipeline().predict(TEXTS).tolist() == model.predict(TEXTS).tolist()


def test_another_encoder_or_vocabulary_is_refused(tmp_path, monkeypatch):
    files = write(tmp_path / "release", SentenceEncoder())
    other = tmp_path / "model.onnx"
    other.write_bytes(b"other")
    with monkeypatch.context() as patched:
        patched.setattr(sentences, "weights_of", lambda encoder: other)
        with pytest.raises(NotGenuine, match="not the one that features"):
            read_featurizer(files)
        patched.setattr(sentences, "weights_of", lambda encoder: None)
        with pytest.raises(DpalError, match=re.escape(install("text"))):
            read_featurizer(files)
    vocabulary = files[sentences.VOCABULARY]
    vocabulary.write_bytes(vocabulary.read_bytes() + b"x")
    with pytest.raises(NotGenuine, match="not the vocabulary"):
        read_featurizer(files)
    files = write(tmp_path / "again", SentenceEncoder())
    directions = files[sentences.DIRECTIONS]
    directions.write_bytes(directions.read_bytes() + b"x")
    with pytest.raises(NotGenuine, match=r"encoder\.directions\.npz is not the file"):
        read_featurizer(files)


def test_another_encoder_predicts_something_else_and_is_found_out(tmp_path, monkeypatch):
    files = write(tmp_path / "release", SentenceEncoder())
    rows = sentences.SentenceNetwork.rows
    monkeypatch.setattr(sentences.SentenceNetwork, "rows", lambda self, texts: rows(self, texts) + 0.01)
    with pytest.raises(NotGenuine, match="predicts something else here"):
        Model("p", 1, files).check()
