"""MC dropout on gate output: only post-processing, the same order each time, doubt where the model has seen little.

What needs the network runs where torch is installed and says so where it is not.
"""

import numpy as np
import pytest

from learner.errors import ExtraMissing
from learner.linear_model import LinearModel
from learner.strategies import dropout_network
from learner.strategies.dropout_network import deep_installed, statistics_over_dropout
from learner.strategies.uncertainty import Uncertainty
from privacy.mechanisms.randomness import SimulationRandom

RNG = np.random.default_rng(8)
X = RNG.normal(size=(200, 6)).astype(np.float32) / 3
BINARY = LinearModel(5 * RNG.normal(size=(1, 6)), np.zeros(1), ("no", "yes"))
THREE = LinearModel(5 * RNG.normal(size=(3, 6)), np.zeros(3), ("a", "b", "c"), "softmax")
ROWS = np.arange(200)
needs_torch = pytest.mark.skipif(not deep_installed(), reason="MC dropout needs the extra `deep`")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(dropout_network, "deep_installed", lambda: False)
    with pytest.raises(ExtraMissing, match="extra `deep`"):
        Uncertainty("mc_dropout", draws=3).query(X, ROWS, BINARY, 5, SimulationRandom(0))


def test_nothing_to_predict_needs_no_network():
    found = statistics_over_dropout(X, ROWS[:0], THREE, draws=3, dropout_rate=0.2)
    assert (found.mean.shape, found.variance.shape) == ((0, 3), (0,))


def test_one_draw_has_no_disagreement():
    with pytest.raises(ValueError, match="mc_dropout takes at least 2 draws"):
        Uncertainty("mc_dropout")


@needs_torch
@pytest.mark.parametrize("model", [BINARY, THREE], ids=["binary", "three"])
def test_the_network_learns_what_the_released_model_says(model):
    found = statistics_over_dropout(X, ROWS, model, draws=40, dropout_rate=0.2)
    told = model.predict_proba(X)
    np.testing.assert_allclose(found.mean.sum(axis=1), 1)
    assert (found.mean.argmax(axis=1) == told.argmax(axis=1)).mean() > 0.9
    assert np.abs(found.mean - told).mean() < 0.1
    assert found.variance.shape == (200,)
    assert (found.variance > 0).all()


@needs_torch
def test_equal_input_gives_equal_order_whatever_the_randomness():
    strategy = Uncertainty("mc_dropout", draws=10)
    orders = [strategy.query(X, ROWS, THREE, 30, SimulationRandom(seed)) for seed in (1, 2)]
    np.testing.assert_array_equal(*orders)
    shuffled = np.random.default_rng(0).permutation(200)
    np.testing.assert_array_equal(strategy.query(X, shuffled, THREE, 30, SimulationRandom(1)), orders[0])


@needs_torch
def test_draws_without_dropout_agree():
    found = statistics_over_dropout(X, ROWS, BINARY, draws=5, dropout_rate=0.0)
    assert found.variance.max() < 1e-12


@needs_torch
def test_doubt_is_larger_near_the_boundary_than_far_from_it():
    strategy = Uncertainty("mc_dropout", draws=40)
    doubt = strategy.uncertainty_of(strategy.statistics(X, ROWS, BINARY))
    distance = np.abs(BINARY.decision_function(X))
    near, far = distance < np.quantile(distance, 0.25), distance > np.quantile(distance, 0.75)
    assert doubt[near].min() > doubt[far].max()


@needs_torch
def test_blocks_change_nothing(monkeypatch):
    whole = statistics_over_dropout(X, ROWS, THREE, draws=5, dropout_rate=0.3)
    monkeypatch.setattr(dropout_network, "default_block_rows", lambda *_: 7)
    parts = statistics_over_dropout(X, ROWS, THREE, draws=5, dropout_rate=0.3)
    np.testing.assert_allclose(parts.mean, whole.mean, atol=1e-6)
