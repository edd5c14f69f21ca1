"""Runs side by side are the runs one after another."""

import numpy as np
import pytest

from learner.estimators.minibatch_svm import MiniBatchSVMBaseline
from learner.estimators.simulated_runs import simulate_minibatch_runs

RNG = np.random.default_rng(4)
X = RNG.normal(size=(120, 5))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = (X[:, 0] + 0.3 * RNG.normal(size=120) > 0).astype(int)
ORDERS = np.stack([np.random.default_rng(run).permutation(120) for run in range(7)])


def runs(**changes):
    options = {"batch_size": 20, "noise_scale": 0.0, "step_size": 4.0, "radius": 3.0, "rng": np.random.default_rng(0)}
    return simulate_minibatch_runs(X, 2.0 * Y - 1, ORDERS, **(options | changes))


@pytest.mark.parametrize("regularization", [0.0, 0.05])
def test_without_noise_each_run_is_the_estimators(regularization):
    reported = runs(regularization=regularization, checkpoints=[1, 3, 6])
    assert reported.shape == (3, 7, 5)
    for run, order in enumerate(ORDERS):
        estimator = MiniBatchSVMBaseline(classes=[0, 1], radius=3.0, regularization=regularization, fit_intercept=False)
        for step in range(6):
            batch = order[20 * step : 20 * step + 20]
            estimator.partial_fit(X[batch], Y[batch])
            if step + 1 in (1, 3, 6):
                place = [1, 3, 6].index(step + 1)
                np.testing.assert_allclose(reported[place, run], estimator.coef_[0], atol=1e-6)


def test_noise_has_gamma_length_on_every_sum():
    """Seeded: one step from zero rows; the mean length of 20,000 runs within 5 sigma of d times the scale."""
    orders = np.zeros((20_000, 1), dtype=np.intp)
    moved = simulate_minibatch_runs(
        np.zeros((1, 4)),
        np.ones(1),
        orders,
        batch_size=1,
        noise_scale=0.5,
        step_size=1.0,
        radius=1e9,
        rng=np.random.default_rng(1),
    )[0]
    lengths = np.linalg.norm(moved, axis=1)
    assert abs(lengths.mean() - 2.0) < 5 * 0.5 * 2 / np.sqrt(20_000)
    assert np.abs(moved.mean(axis=0)).max() < 5 * 1.2 / np.sqrt(20_000)


def test_precision_is_that_of_the_rows():
    single = simulate_minibatch_runs(
        X.astype(np.float32),
        2.0 * Y - 1,
        ORDERS,
        batch_size=20,
        noise_scale=0.1,
        step_size=4.0,
        radius=3.0,
        rng=np.random.default_rng(0),
    )
    assert single.dtype == np.float32
    assert np.linalg.norm(single, axis=2).max() <= 3.001


@pytest.mark.parametrize("checkpoints", [[0], [2, 2], [3, 1], [7]])
def test_checkpoints_are_checked(checkpoints):
    with pytest.raises(ValueError, match="checkpoints must increase"):
        runs(checkpoints=checkpoints)
