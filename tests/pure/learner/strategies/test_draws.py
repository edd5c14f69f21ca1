import numpy as np
import pytest

from learner.linear_model import LinearModel
from learner.strategies.draws import statistics_over_draws, thinned_weights
from learner.strategies.uncertainty import Uncertainty
from privacy.mechanisms.randomness import SimulationRandom

RNG = np.random.default_rng(5)
X = RNG.normal(size=(90, 12)).astype(np.float32)
MODELS = {
    "binary": LinearModel(RNG.normal(size=(1, 12)), RNG.normal(size=1), ("no", "yes")),
    "one_vs_rest": LinearModel(RNG.normal(size=(3, 12)), RNG.normal(size=3), ("a", "b", "c")),
    "softmax": LinearModel(RNG.normal(size=(3, 12)), RNG.normal(size=3), ("a", "b", "c"), "softmax"),
}


@pytest.mark.parametrize("name", MODELS)
def test_statistics_equal_a_loop_over_thinned_models(name):
    model, rows = MODELS[name], np.arange(10, 80)
    found = statistics_over_draws(X, rows, model, draws=7, dropout_rate=0.3)
    weights = thinned_weights(model, draws=7, dropout_rate=0.3).T.reshape(7, -1, 12)
    each = [
        LinearModel(coef.astype(np.float64), model.intercept, model.classes, model.multiclass).predict_proba(X[rows])
        for coef in weights
    ]
    np.testing.assert_allclose(found.mean, np.mean(each, axis=0), atol=1e-6)
    np.testing.assert_allclose(found.variance, np.var(each, axis=0).sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(found.confidence, found.mean.max(axis=1))


def test_a_share_of_the_weights_is_left_out_for_all_classes_at_once_and_the_rest_makes_up_for_it():
    model = LinearModel(np.ones((3, 4000)), np.zeros(3), ("a", "b", "c"))
    weights = thinned_weights(model, draws=2, dropout_rate=0.25).T.reshape(2, 3, 4000)
    assert set(np.unique(weights)) == {0.0, np.float32(1 / 0.75)}
    assert weights.mean() == pytest.approx(1.0, abs=0.05)
    np.testing.assert_array_equal(weights[:, 0], weights[:, 2])
    assert (weights[0] != weights[1]).any()


def test_without_dropout_every_draw_is_the_model():
    model = MODELS["softmax"]
    found = statistics_over_draws(X, np.arange(90), model, draws=9, dropout_rate=0.0)
    np.testing.assert_allclose(found.mean, model.predict_proba(X), atol=1e-6)
    assert found.variance.max() < 1e-12


def test_where_one_word_decides_the_draws_differ_and_a_single_prediction_cannot_tell():
    """Both texts get the same score; one rests on a single word, the other on ten."""
    model = LinearModel(np.full((1, 11), 1.0), np.zeros(1), ("no", "yes"))
    texts = np.zeros((2, 11), dtype=np.float32)
    texts[0, 0], texts[1, 1:] = 3.0, 0.3
    once = Uncertainty().measured(model.predict_proba(texts))
    assert once[0] == pytest.approx(once[1], rel=1e-5)
    rows = np.arange(2)
    for measure in ("entropy", "variance"):
        assert Uncertainty(measure, draws=50).query(texts, rows, model, 1, SimulationRandom(0)).tolist() == [0]


def test_no_candidates():
    found = statistics_over_draws(X, np.arange(0), MODELS["binary"], draws=3, dropout_rate=0.2)
    assert found.mean.shape == (0, 2)
    assert found.confidence.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": 0}, "draws"),
        ({"draws": 5, "dropout_rate": 1.0}, "dropout_rate"),
        ({"draws": 5, "dropout_rate": -0.1}, "dropout_rate"),
        ({"measure": "variance"}, "at least 2 draws"),
        ({"measure": "variance", "draws": 5, "dropout_rate": 0.0}, "at least 2 draws"),
    ],
)
def test_parameters_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        Uncertainty(**arguments)
