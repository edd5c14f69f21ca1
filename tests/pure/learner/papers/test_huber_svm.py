import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.papers.ghassemi_curves import HuberLoss, HuberSVMBaseline, PrivateHuberSVM
from privacy.accounting.events import event_from_json

TRIALS = 30 * int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))


def blobs(n=300, d=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    X = rng.normal(size=(n, d)) + 3 * np.eye(classes, d)[y]
    return X / (1.001 * np.linalg.norm(X, axis=1, keepdims=True)), y


@pytest.mark.parametrize("smoothing", [0.125, 0.5, 2.0])
def test_loss_is_the_smoothed_hinge(smoothing):
    margins = np.linspace(-6, 6, 4_001)
    loss = HuberLoss(smoothing)
    value = np.where(
        margins > 1 + smoothing,
        0,
        np.where(margins < 1 - smoothing, 1 - margins, (1 + smoothing - margins) ** 2 / (4 * smoothing)),
    )
    np.testing.assert_allclose(np.gradient(value, margins)[1:-1], loss.slope(margins)[1:-1], atol=0.01)
    np.testing.assert_allclose(np.gradient(loss.slope(margins), margins).max(), loss.curvature_bound, rtol=1e-6)
    assert loss.curvature(margins).max() == loss.curvature_bound
    assert np.abs(loss.slope(margins)).max() == loss.slope_bound


@given(
    epsilon=st.floats(0.05, 20),
    regularization=st.floats(1e-2, 1e4),
    smoothing=st.floats(0.125, 8),
    method=st.sampled_from(["objective", "output"]),
    adjacency=st.sampled_from(["null", "replace"]),
    n_classes=st.integers(2, 6),
)
def test_the_price_is_epsilon_whatever_the_parameters(epsilon, regularization, smoothing, method, adjacency, n_classes):
    estimator = PrivateHuberSVM(
        epsilon, regularization, method, smoothing=smoothing, classes=range(n_classes), adjacency=adjacency
    )
    event = estimator.event_for(7)
    assert event_from_json(event.to_json()) == event
    cost = event.cost(adjacency=adjacency)
    floor = 1 - 1e-11 if getattr(event, "extra_regularization", 0) == 0 else 0.98
    assert epsilon * floor * (1 - 1e-11) <= cost.epsilon <= epsilon


def minimisers(regularization, *datasets, **options):
    fitted = [
        HuberSVMBaseline(regularization, classes=[0, 1], fit_intercept=False, **options).fit(X, y) for X, y in datasets
    ]
    return [each.coef_[0] for each in fitted]


@pytest.mark.parametrize("adjacency", ["null", "replace"])
def test_empirical_sensitivity_stays_under_the_stated_one_and_reaches_it(adjacency):
    """Random neighbours of random sets stay below; a lone record whose margin stays before the bend reaches all."""
    rng = np.random.default_rng(3)
    for trial in range(TRIALS):
        regularization = math.exp(rng.uniform(-2, 4))
        X, y = blobs(n=int(rng.integers(1, 25)), d=3, seed=trial)
        other = (X[1:], y[1:]) if adjacency == "null" else (np.vstack([-X[:1], X[1:]]), y)
        first, second = minimisers(regularization, (X, y), other, smoothing=0.25)
        stated = PrivateHuberSVM(
            1.0, regularization, "output", smoothing=0.25, classes=[0, 1], adjacency=adjacency, fit_intercept=False
        ).event_for(3)
        assert np.linalg.norm(first - second) <= stated.sensitivity_l2(adjacency)
    lone = np.array([[1.0, 0.0, 0.0]])
    other = (lone[:0], np.empty(0, dtype=int)) if adjacency == "null" else (-lone, np.ones(1, dtype=int))
    first, second = minimisers(regularization * 10, (lone, np.ones(1, dtype=int)), other)
    stated = PrivateHuberSVM(
        1.0, regularization * 10, "output", classes=[0, 1], adjacency=adjacency, fit_intercept=False
    ).event_for(3)
    reached = np.linalg.norm(first - second)
    assert 0.99 * stated.sensitivity_l2(adjacency) <= reached <= stated.sensitivity_l2(adjacency)


def test_the_baseline_is_the_limit_of_a_large_epsilon_and_never_releasable():
    X, y = blobs()
    baseline = HuberSVMBaseline(2.0).fit(X, y)
    assert not baseline.releasable
    private = PrivateHuberSVM(1e9, 2.0, classes=[0, 1], random_state=0).fit(X, y)
    assert np.allclose(baseline.coef_, private.coef_, atol=1e-4)
