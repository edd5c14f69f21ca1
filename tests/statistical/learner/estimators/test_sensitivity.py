"""Empirical sensitivity of every estimator: 10,000 random and worst neighbours stay under the stated one, reach half.

All draws are seeded. What is compared is what the noise must hide: minimisers, gradients that a tilt absorbs and the
Jacobian of that map.
"""

import math

import numpy as np
import pytest

from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.logistic import PrivateLogisticRegression
from learner.papers.ghassemi_curves import HuberSVMBaseline, PrivateHuberSVM

NEIGHBOURS = 10_000
ROWS, WIDTH = 12, 3
OPTIONS = {"classes": [0, 1], "fit_intercept": False}
PAIRS = [(PrivateLogisticRegression, LogisticRegressionBaseline), (PrivateHuberSVM, HuberSVMBaseline)]
pytestmark = pytest.mark.statistical


def random_records(rng, *shape):
    """Rows on the sphere or inside it, many leaning one way, with labels that mostly follow a direction."""
    X = rng.normal(size=(*shape, WIDTH)) + rng.choice([0.0, 3.0], size=(*shape, 1))
    X *= rng.choice([1.0, 0.3], size=(*shape, 1)) / np.maximum(np.linalg.norm(X, axis=-1, keepdims=True), 1e-9)
    return X, np.where(X[..., 0] > rng.normal(scale=0.5, size=shape), 1.0, -1.0)


def minimisers(loss, X, signs, ridge):
    """Solve all problems side by side by Newton's steps, halved while they overshoot; shape (problems, d)."""

    def gradients(weights):
        margins = signs * np.einsum("nij,nj->ni", X, weights)
        return np.einsum("nij,ni->nj", X, signs * loss.slope(margins)) + ridge[:, None] * weights, margins

    weights = np.zeros((len(X), X.shape[2]))
    for _ in range(80):
        slopes, margins = gradients(weights)
        if np.linalg.norm(slopes, axis=1).max() < 1e-10:
            return weights
        hessians = np.einsum("nij,ni,nik->njk", X, loss.curvature(margins), X)
        hessians += ridge[:, None, None] * np.eye(X.shape[2])
        steps = np.linalg.solve(hessians, slopes[..., None])[..., 0]
        ahead, lengths = (slopes * steps).sum(axis=1), np.ones(len(X))
        for _ in range(40):
            # Past the lowest point along the step the slope turns; a little past it is near enough.
            beyond = (gradients(weights - lengths[:, None] * steps)[0] * steps).sum(axis=1) < -0.5 * ahead
            if not beyond.any():
                break
            lengths[beyond] /= 2
        weights = weights - lengths[:, None] * steps
    raise AssertionError(f"a gradient of norm {np.linalg.norm(slopes, axis=1).max()} is left")


def odd_records(crowded):
    """A lone record, or for logistic loss one that many records nearly at right angles push against its label."""
    if not crowded:
        return np.array([[[1.0, 0.0, 0.0]]]), np.ones((1, 1))
    push = np.array([[0.01, math.sqrt(1 - 1e-4), 0.0], [0.01, -math.sqrt(1 - 1e-4), 0.0]])
    X = np.vstack([[[1.0, 0.0, 0.0]], np.repeat(push, 10_000, axis=0)])
    return X[None], np.append(-1.0, np.ones(20_000))[None]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("adjacency", ["null", "replace"])
@pytest.mark.parametrize(("private", "plain"), PAIRS, ids=["logistic", "huber"])
def test_minimisers(private, plain, adjacency):
    """Output perturbation; the solver's own answers agree with those compared here."""
    rng = np.random.default_rng(20_250_501)
    loss = plain(**OPTIONS)._loss

    def stated(ridge):
        return private(1.0, ridge, "output", adjacency=adjacency, **OPTIONS).event_for(WIDTH).sensitivity_l2(adjacency)

    X, signs = random_records(rng, NEIGHBOURS, ROWS)
    # A row of zeros moves a logistic loss by a constant: so the problems have 1 to 12 records.
    X[np.arange(ROWS) >= rng.integers(1, ROWS + 1, size=NEIGHBOURS)[:, None]] = 0
    ridge = np.exp(rng.uniform(-3, 5, size=NEIGHBOURS))
    other_X, other_signs = X.copy(), signs.copy()
    other_X[:, 0] = 0
    if adjacency == "replace":
        other_X[:, 0], other_signs[:, 0] = random_records(rng, NEIGHBOURS)
    found = minimisers(loss, X, signs, ridge)
    apart = np.linalg.norm(found - minimisers(loss, other_X, other_signs, ridge), axis=1)
    limits = np.array([stated(float(each)) for each in ridge])
    assert (apart <= limits).all()
    for place in range(0, NEIGHBOURS, 200):
        solved = plain(float(ridge[place]), **OPTIONS).fit(X[place], (signs[place] > 0).astype(int)).coef_[0]
        np.testing.assert_allclose(solved, found[place], atol=2e-6 / ridge[place] + 1e-9)

    crowded = private is PrivateLogisticRegression
    X, signs = odd_records(crowded)
    other_X, other_signs = X.copy(), signs.copy()
    other_X[:, 0] = 0
    if adjacency == "replace":
        other_X[:, 0] = [0.0, 0.0, 1.0] if crowded else [-1.0, 0.0, 0.0]
        other_signs[:, 0] = 1
    pair = [minimisers(loss, *each, np.array([50.0])) for each in ((X, signs), (other_X, other_signs))]
    assert 0.5 <= np.linalg.norm(pair[0] - pair[1]) / stated(50.0) <= 1


@pytest.mark.parametrize(
    ("method", "adjacency"),
    [("objective", "null"), ("objective", "replace")],
)
@pytest.mark.parametrize("private", [pair[0] for pair in PAIRS], ids=["logistic", "huber"])
def test_tilts_and_their_jacobian(method, private, adjacency):
    """Objective perturbation: one record shifts the tilt that gives a minimiser, and stretches the map around it."""
    rng = np.random.default_rng(20_250_503)
    estimator = private(1.0, 1.0, method, adjacency=adjacency, **OPTIONS)
    loss, event = estimator._loss, estimator.event_for(WIDTH)
    weights = rng.normal(size=(NEIGHBOURS, WIDTH)) * rng.choice([0.01, 1.0, 30.0], size=(NEIGHBOURS, 1))
    weights[-1] = 0
    X, signs = random_records(rng, NEIGHBOURS, ROWS)
    X[: NEIGHBOURS // 2, 1:] = 0  # a lone record has the smallest Hessian and so the largest stretch
    # The worst record: misclassified by a wide margin, or where the loss bends most.
    X[0], signs[0], weights[0] = 0, 1.0, [-50.0, 0.0, 0.0]
    X[0, 0] = [1.0, 0.0, 0.0]
    X[-1] = 0
    X[-1, 0] = [1.0, 0.0, 0.0]
    if private is PrivateHuberSVM:
        weights[-1] = [1.0, 0.0, 0.0]

    def gradient(rows, side):
        return rows * (side * loss.slope(side * (rows * weights).sum(axis=1)))[:, None]

    other, other_signs = random_records(rng, NEIGHBOURS)
    other[0], other_signs[0] = [-1.0, 0.0, 0.0], -1.0
    weights_pull = gradient(X[:, 0], signs[:, 0])
    shifts = weights_pull - (gradient(other, other_signs) if adjacency == "replace" else 0)
    stated = event.gradient_bound * (2 if adjacency == "replace" else 1)
    lengths = np.linalg.norm(shifts, axis=1)
    assert lengths.max() <= stated
    # Two records pull opposite ways only where both are misclassified.
    assert lengths.max() >= 0.5 * stated

    curvature = loss.curvature(signs * np.einsum("nij,nj->ni", X, weights))
    rest = np.einsum("nij,ni,nik->njk", X[:, 1:], curvature[:, 1:], X[:, 1:])
    rest += event.total_regularization * np.eye(WIDTH)
    stretch = np.einsum("ni,ni->n", X[:, 0], np.linalg.solve(rest, X[:, 0][..., None])[..., 0]) * curvature[:, 0]
    stated = math.log1p(event.curvature * event.norm_bound**2 / event.total_regularization)
    assert np.log1p(stretch).max() <= stated
    assert np.log1p(stretch).max() >= 0.5 * stated
