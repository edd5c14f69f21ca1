import numpy as np
import pyarrow as pa
import pytest

from dpal.features.table import CategoricalColumn, NumericColumn
from learner.features.tabular import TabularFeaturizer

AMOUNT = NumericColumn("amount", 0, 10)
COLOUR = CategoricalColumn("colour", ["red", "blue"])


def encoded(featurizer, batch):
    return featurizer.transform(batch).astype(np.float64) * np.sqrt(len(featurizer.columns))


def test_numbers_are_clipped_then_scaled():
    rows = encoded(TabularFeaturizer([AMOUNT]), {"amount": [0, 2.5, 5, 10, 99, -99, np.inf, -np.inf, 10**400]})
    np.testing.assert_allclose(rows[:, 0], [-1, -0.5, 0, 1, 1, -1, 1, -1, 1], atol=1e-6)


def test_every_form_of_a_batch_gives_the_same_rows():
    featurizer = TabularFeaturizer([AMOUNT, COLOUR])
    columns = {"amount": [1, 2, None], "colour": ["red", None, "green"], "unused": [1, 2, 3]}
    records = [{"amount": 1, "colour": "red"}, {"amount": "2"}, {"colour": "green"}]
    expected = featurizer.transform(columns)
    for batch in (records, pa.table(columns), pa.RecordBatch.from_pydict(columns)):
        np.testing.assert_array_equal(featurizer.transform(batch), expected)


def test_bounded_rows_are_never_shortened():
    """The worst record reaches the bound up to rounding and still is not clipped."""
    rows = TabularFeaturizer([AMOUNT, COLOUR]).transform([{"amount": 10, "colour": "red"}])
    np.testing.assert_allclose(rows[0], [np.sqrt(0.5), np.sqrt(0.5), 0, 0], rtol=1e-6)


@pytest.mark.parametrize(
    "build",
    [
        lambda: NumericColumn("x", 1, 1),
        lambda: NumericColumn("x", 0, float("inf")),
        lambda: NumericColumn("x", -1.7e308, 1.7e308),
        lambda: NumericColumn("x", 0, 1, missing=2),
        lambda: NumericColumn("x", 0, 1, scale="other"),
        lambda: CategoricalColumn("x", []),
        lambda: CategoricalColumn("x", ["a", "a"]),
        lambda: TabularFeaturizer([]),
        lambda: TabularFeaturizer([AMOUNT, AMOUNT]),
        lambda: TabularFeaturizer([AMOUNT], row_scaling="other"),
    ],
)
def test_declarations_are_checked(build):
    with pytest.raises(ValueError):
        build()
