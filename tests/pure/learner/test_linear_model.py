import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special

from learner.linear_model import LinearModel

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(
    coef=hnp.arrays(np.float64, (3, 4), elements=FINITE),
    intercept=hnp.arrays(np.float64, 3, elements=FINITE),
    multiclass=st.sampled_from(["one_vs_rest", "softmax"]),
)
def test_json_keeps_every_bit(coef, intercept, multiclass):
    model = LinearModel(coef, intercept, ("a", "b", "ž"), multiclass)
    again = LinearModel.from_json(json.loads(json.dumps(model.to_json())))
    assert again.coef.tobytes() == coef.tobytes()
    assert again.intercept.tobytes() == intercept.tobytes()
    assert (again.classes, again.multiclass) == (("a", "b", "ž"), multiclass)


def test_binary_probabilities_and_predictions():
    model = LinearModel(np.array([[1.0, -2.0]]), np.array([0.5]), ("no", "yes"))
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-0.5, 0.0]])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], special.expit([1.5, -1.5, 0.0]))
    assert model.predict(X) == ["yes", "no", "no"]


def test_multiclass_probabilities_follow_their_rule():
    values = np.random.default_rng(1).normal(size=(9, 3)) * 5
    coef = np.zeros((3, 1))
    by_rest = LinearModel(coef, np.zeros(3), ("a", "b", "c")).probabilities(values)
    logistic = special.expit(values)
    np.testing.assert_allclose(by_rest, logistic / logistic.sum(axis=1, keepdims=True), rtol=1e-12)
    by_softmax = LinearModel(coef, np.zeros(3), ("a", "b", "c"), "softmax").probabilities(values)
    np.testing.assert_allclose(by_softmax, special.softmax(values, axis=1), rtol=1e-12)
    assert not np.allclose(by_rest, by_softmax)


def test_probabilities_survive_extreme_values():
    model = LinearModel(np.zeros((3, 1)), np.zeros(3), ("a", "b", "c"))
    shares = model.probabilities(np.array([[-2000.0, -2000.0, -3000.0], [2000.0, -2000.0, 0.0]]))
    np.testing.assert_allclose(shares[0], [0.5, 0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("coef", "intercept", "classes", "multiclass"),
    [
        (np.zeros((2, 3)), np.zeros(2), ("a", "b"), "softmax"),
        (np.zeros((1, 3)), np.zeros(1), ("a", "b", "c"), "softmax"),
        (np.zeros((1, 3)), np.zeros(2), ("a", "b"), "softmax"),
        (np.zeros(3), np.zeros(1), ("a", "b"), "softmax"),
        (np.zeros((1, 3)), np.zeros(1), ("a",), "softmax"),
        (np.zeros((1, 3)), np.zeros(1), ("a", "a"), "softmax"),
        (np.full((1, 3), np.nan), np.zeros(1), ("a", "b"), "softmax"),
        (np.zeros((1, 3)), np.array([np.inf]), ("a", "b"), "softmax"),
        (np.zeros((1, 3)), np.zeros(1), ("a", "b"), "one_vs_one"),
    ],
)
def test_impossible_models_are_refused(coef, intercept, classes, multiclass):
    with pytest.raises(ValueError):
        LinearModel(coef, intercept, classes, multiclass)


@pytest.mark.parametrize("multiclass", ["one_vs_rest", "softmax"])
@pytest.mark.parametrize("known", [2, 3])
def test_beside_further_classes_a_model_says_of_its_own_what_it_said(known, multiclass):
    rng = np.random.default_rng(5)
    outputs, names = 1 if known == 2 else known, tuple("abc"[:known])
    model = LinearModel(rng.normal(size=(outputs, 4)), rng.normal(size=outputs), names, multiclass)
    beside = model.knowing([*names, "further"])
    X = rng.normal(size=(50, 4))
    own = beside.probabilities(beside.decision_function(X))[:, :known]
    np.testing.assert_allclose(own / own.sum(axis=1, keepdims=True), model.predict_proba(X), rtol=1e-9)
    assert not beside.coef[known:].any()
    assert beside.classes == (*names, "further")
    assert model.knowing(names) is model
    with pytest.raises(ValueError, match="come behind"):
        model.knowing(["further", *names])
