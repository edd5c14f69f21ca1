"""Features as a step: the vectors that the featuriser itself makes, to the last bit."""

import json

import numpy as np
import pytest

from dpal.features.table import CategoricalColumn, NumericColumn
from learner.features.batches import batch_bytes, batch_of, features_step, values_batch, vectors_in
from learner.features.static_encoder import StaticEncoder
from learner.features.tabular import TabularFeaturizer
from learner.features.text import HashingTextFeaturizer

TEXTS = ["Play a song", "", "Ünïcode, ja!", "play a song", "one two three four five"]
ROWS = [{"age": 0.1 + 0.2, "town": "Köln"}, {"age": "", "town": None}, {"age": 2**60, "town": "Rom"}]
TABLE = TabularFeaturizer([NumericColumn("age", 0, 120), CategoricalColumn("town", ["Bonn", "Köln"])])


def sent(batch):
    return batch_of(bytes(batch_bytes(batch)))


@pytest.mark.parametrize("featurizer", [HashingTextFeaturizer(16), StaticEncoder(n_features=8)], ids=lambda x: x.kind)
def test_texts_have_the_vectors_of_their_featuriser(featurizer):
    made = sent(features_step(featurizer).ready()(sent(values_batch(TEXTS))))
    expected = featurizer.transform(TEXTS)
    found = vectors_in(made, featurizer.dimension)
    assert found.dtype == np.float32
    assert found.tobytes() == expected.tobytes()


def test_rows_of_a_table_travel_as_json():
    made = features_step(TABLE).ready()(values_batch(map(json.dumps, ROWS)))
    assert vectors_in(made, TABLE.dimension).tobytes() == TABLE.transform(ROWS).tobytes()


def test_no_rows_have_no_vectors():
    made = features_step(TABLE).ready()(values_batch([]))
    assert vectors_in(made, TABLE.dimension).shape == (0, TABLE.dimension)
