import hashlib
import json

import numpy as np
import pytest

from dpal.features.table import CategoricalColumn, NumericColumn
from learner.features.base import TEXTS
from learner.features.image import ImageFeaturizer
from learner.features.static_encoder import StaticEncoder
from learner.features.tabular import TabularFeaturizer
from learner.features.text import HashingTextFeaturizer
from learner.linear_model import LinearModel
from learner.releases.artifacts.files import samples_document

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
