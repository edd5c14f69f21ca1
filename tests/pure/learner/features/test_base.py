import json

import numpy as np
import pytest

from dpal.features.table import CategoricalColumn, NumericColumn
from learner.features.base import featurizer_from_json
from learner.features.image import ImageFeaturizer
from learner.features.static_encoder import StaticEncoder
from learner.features.tabular import TabularFeaturizer
from learner.features.text import HashingTextFeaturizer

TEXTS = ["play some jazz", "PLAY some jazz!", "", None, "what's the weather in Brno", "żółć žluťoučký"]
TABLE = [
    {"amount": 12.5, "country": "cz"},
    {"amount": -1e308, "country": "de"},
    {"amount": None, "country": None},
    {"amount": "broken", "country": "unseen"},
    {},
]
COLUMNS = [NumericColumn("amount", 0, 100), CategoricalColumn("country", ["cz", "de"])]
IMAGES = np.random.default_rng(3).integers(0, 256, size=(6, 7, 5), dtype=np.uint8)
COLOURED = np.random.default_rng(4).integers(0, 256, size=(6, 7, 5, 3), dtype=np.uint8)

FEATURIZERS = [
    (HashingTextFeaturizer(), TEXTS),
    (HashingTextFeaturizer(64, ngram_range=(1, 2), norm_bound=0.3, normalizer="L0"), TEXTS),
    (StaticEncoder(), TEXTS),
    (StaticEncoder(n_features=9, norm_bound=0.3, normalizer="L2"), TEXTS),
    (TabularFeaturizer(COLUMNS), TABLE),
    (TabularFeaturizer(COLUMNS, norm_bound=3.0, row_scaling="unit"), TABLE),
    (ImageFeaturizer(7, 5), IMAGES),
    (ImageFeaturizer(7, 5, pooled=(3, 2), norm_bound=0.7, row_scaling="bounded"), IMAGES),
    (ImageFeaturizer(7, 5, hues=(2, 1)), COLOURED),
    (ImageFeaturizer(7, 5, pooled=(3, 2), norm_bound=0.7, row_scaling="bounded", hues=(2, 1)), COLOURED),
    (ImageFeaturizer(7, 5, projection=(9, 1), centered=True, hues=(2, 1)), COLOURED),
    (ImageFeaturizer(7, 5, pooled=(4, 4), projection=(9, 2**63), row_scaling="bounded"), IMAGES),
]


@pytest.fixture(params=FEATURIZERS, ids=lambda pair: pair[0].version)
def pair(request):
    return request.param


def test_shape_and_bound(pair):
    featurizer, batch = pair
    rows = featurizer.transform(batch)
    assert rows.dtype == np.float32
    assert rows.shape == (len(batch), featurizer.dimension)
    assert np.linalg.norm(rows.astype(np.float64), axis=1).max() <= featurizer.norm_bound
    assert np.abs(rows).max() > 0


def test_a_row_depends_on_its_own_record_alone(pair):
    featurizer, batch = pair
    together = featurizer.transform(batch)
    apart = np.concatenate([featurizer.transform(batch[i : i + 1]) for i in range(len(batch))])
    np.testing.assert_allclose(together, apart, rtol=1e-6, atol=1e-12)


def test_json_rebuilds_the_same_featurizer(pair):
    featurizer, batch = pair
    again = featurizer_from_json(featurizer.to_json())
    assert again == featurizer
    assert hash(again) == hash(featurizer)
    assert again.version == featurizer.version
    np.testing.assert_array_equal(again.transform(batch), featurizer.transform(batch))


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "os.system", "parameters": {}}',
        '{"kind": "image", "parameters": {"height": 2}}',
        '{"kind": "hashing_text", "parameters": {"ngram_range": [1, 1], "surprise": 1}}',
        '{"kind": "tabular"}',
        "[]",
    ],
)
def test_unknown_descriptions_are_refused(text):
    with pytest.raises(ValueError, match="featurizer"):
        featurizer_from_json(text)


def test_stored_form_is_plain_and_canonical():
    text = HashingTextFeaturizer(64).to_json()
    assert json.loads(text) == {
        "kind": "hashing_text",
        "parameters": {"n_features": 64, "ngram_range": [1, 1], "norm_bound": 1.0, "normalizer": "L1"},
    }
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


def test_equal_normal_forms_share_their_features():
    rows = HashingTextFeaturizer(64).transform(["Play SOME jazz!!", "  play some\tjazz "])
    np.testing.assert_array_equal(rows[0], rows[1])
