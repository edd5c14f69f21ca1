import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer

from learner.features.base import Featurizer
from learner.features.static_encoder import StaticEncoder, read_table
from learner.features.text import HashingTextFeaturizer
from privacy.gate.normalizers import Normalizer, normalize_text

SAID = [
    "",
    None,
    "play  jazz, play JAZZ",
    "x" * 300,
    "naïve café 東京 ok",
    "three\0words here",
    "7 8 nine",
    "Mondays 7:30",
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(SAID)


def normal(texts: list[str | None], rule: str) -> list[str]:
    return [normalize_text(text or "", Normalizer(rule)) for text in texts]


def scaled(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 3), (2, 2)])
@given(texts=st.lists(TEXT, min_size=1, max_size=8), rule=st.sampled_from(Normalizer))
def test_counts_are_those_of_scikit_learn(texts, rule, ngram_range):
    vectorizer = HashingVectorizer(
        n_features=32, ngram_range=ngram_range, norm=None, lowercase=False, tokenizer=str.split, token_pattern=None
    )
    wanted = vectorizer.transform(normal(texts, rule)).toarray()
    rows = HashingTextFeaturizer(32, ngram_range=ngram_range, normalizer=rule).raw_rows(texts)
    np.testing.assert_array_equal(rows, scaled(wanted))


@pytest.mark.parametrize("rule", ["L1", "L3"])
def test_vectors_add_up_in_the_order_of_the_words(rule):
    table = read_table("minilm-static")
    wanted = np.zeros((len(SAID), 64))
    for row, text in zip(wanted, normal(SAID, rule), strict=True):
        for word in text.split():
            pieces = table.tokenizer.encode(word).ids
            row += table.scales[pieces] @ table.vectors[pieces, :64].astype(float)
    np.testing.assert_array_equal(StaticEncoder(n_features=64, normalizer=rule).raw_rows(SAID), scaled(wanted))


@pytest.mark.parametrize(
    ("featurizer", "version", "digest"),
    [
        (HashingTextFeaturizer(128), "hashing_text-aacd3cad0e151509", "a2216083413846d3"),
        (
            HashingTextFeaturizer(64, ngram_range=(1, 3), normalizer="L3"),
            "hashing_text-dbdbe0234ad9188e",
            "97bb52b6b79aefe5",
        ),
        (StaticEncoder(n_features=128), "static_encoder-39a6a00cbe8d846a", "c7b37e0334bc6f40"),
    ],
)
def test_rows_and_versions_never_change(featurizer: Featurizer, version, digest):
    """Feature files are found by their version and must be read again after an upgrade."""
    assert featurizer.version == version
    assert hashlib.sha256(featurizer.transform(SAID).tobytes()).hexdigest()[:16] == digest
