"""Empirical sensitivity: random neighbours of random data stay under the stated bound, worst ones reach half of it.

10,000 neighbours for each estimator under `make evidence`, 500 otherwise; all draws are seeded.
"""

import math
import os

import numpy as np
import pytest

from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.huber_svm import HuberSVMBaseline, PrivateHuberSVM
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM, hinge_gradient_sum

NEIGHBOURS = 500 * int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
OPTIONS = {"classes": [0, 1], "fit_intercept": False}
pytestmark = pytest.mark.statistical


def minimiser(estimator_class, X, y, regularization):
    return estimator_class(regularization, **OPTIONS).fit(X, y).coef_[0]


def random_records(rng, count):
    """Rows on the sphere or inside it, leaning one way, with labels that mostly follow a direction."""
    X = rng.normal(size=(count, 3)) + rng.choice([0.0, 3.0])
    X *= rng.choice([1.0, 0.3]) / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    return X, (X[:, 0] > rng.normal(scale=0.5, size=count)).astype(int)


def odd_record(crowded):
    """A lone record, or for logistic loss one that many records nearly at right angles push against its label."""
    if not crowded:
        return np.array([[1.0, 0.0, 0.0]]), np.ones(1, dtype=int)
    push = np.array([[0.01, math.sqrt(1 - 1e-4), 0.0], [0.01, -math.sqrt(1 - 1e-4), 0.0]])
    return np.vstack([[[1.0, 0.0, 0.0]], np.repeat(push, 10_000, axis=0)]), np.append(0, np.ones(20_000, dtype=int))


@pytest.mark.parametrize("adjacency", ["null", "replace"])
@pytest.mark.parametrize(
    ("private", "plain"),
    [(PrivateLogisticRegression, LogisticRegressionBaseline), (PrivateHuberSVM, HuberSVMBaseline)],
)
def test_minimisers(private, plain, adjacency):
    """The stated bound includes the certificate's slack, which both solutions use."""
    rng = np.random.default_rng(20_250_501)

    def ratio(X, y, other_X, other_y, regularization):
        event = private(1.0, regularization, "output", adjacency=adjacency, **OPTIONS).event_for(3)
        pair = [minimiser(plain, *each, regularization) for each in ((X, y), (other_X, other_y))]
        return np.linalg.norm(pair[0] - pair[1]) / event.sensitivity_l2(adjacency)

    for _ in range(NEIGHBOURS):
        X, y = random_records(rng, int(rng.integers(1, 30)))
        other_X, other_y = (X[1:], y[1:]) if adjacency == "null" else (X.copy(), y.copy())
        if adjacency == "replace":
            replaced_X, replaced_y = random_records(rng, 1)
            other_X[0], other_y[0] = replaced_X[0], replaced_y[0]
        assert ratio(X, y, other_X, other_y, math.exp(rng.uniform(-3, 5))) <= 1
    X, y = odd_record(crowded=private is PrivateLogisticRegression)
    other_X, other_y = (X[1:], y[1:]) if adjacency == "null" else (X.copy(), y.copy())
    if adjacency == "replace":
        other_X[0] = [0.0, 0.0, 1.0] if private is PrivateLogisticRegression else [-1.0, 0.0, 0.0]
        other_y[0] = 1
    assert 0.5 <= ratio(X, y, other_X, other_y, 50.0) <= 1


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("adjacency", ["null", "replace"])
def test_sums_of_gradients(adjacency, n_classes):
    """One slot of a batch changes, at any weights."""
    rng = np.random.default_rng(20_250_502)
    estimator = MiniBatchPrivateSVM(classes=range(n_classes), adjacency=adjacency, fit_intercept=False)
    event = estimator.event_for(3)
    stated = (1 if adjacency == "null" else 2) * event.norm_bound + event.grid * math.sqrt(event.dimension)
    worst = 0.0
    for _ in range(NEIGHBOURS):
        X, _ = random_records(rng, int(rng.integers(1, 6)))
        y = rng.integers(n_classes, size=len(X))
        other_X, other_y = X.copy(), y.copy()
        other_X[0] = 0.0 if adjacency == "null" else random_records(rng, 1)[0][0]
        other_y[0] = y[0] if adjacency == "null" else rng.integers(n_classes)
        weights = rng.normal(size=(1 if n_classes == 2 else n_classes, 3)) * rng.choice([0.01, 1.0, 10.0])
        pair = [hinge_gradient_sum(*each, weights, grid=event.grid) for each in ((X, y), (other_X, other_y))]
        distance = float(np.linalg.norm(pair[0] - pair[1]))
        assert distance <= stated
        worst = max(worst, distance)
    assert worst >= 0.5 * stated
