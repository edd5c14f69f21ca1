import math

import mpmath
import numpy as np
import pytest
from scipy import optimize

from learner.estimators import convex
from learner.estimators.convex import LinearObjective, LogisticLoss, minimise
from privacy.errors import CertificateMissed


def problem(n=300, d=6, ridge=0.5, *, dtype=np.float64, constant=0.7, seed=0, steep=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * 1.0001
    signs = np.where(X[:, 0] * steep + rng.logistic(size=n) > 0, 1.0, -1.0)
    tilt = rng.normal(size=d + bool(constant))
    return LinearObjective(X.astype(dtype), signs, LogisticLoss(), ridge, tilt, math.hypot(1, constant), constant)


def value(objective, weights):
    constant = np.full((len(objective.X), 1), objective.intercept_scaling)
    X = np.hstack([objective.X.astype(np.float64), constant]) if objective.intercept_scaling else objective.X
    return (
        np.logaddexp(0, -objective.signs * (X @ weights)).sum()
        + objective.ridge / 2 * weights @ weights
        + objective.linear @ weights
    )


def exact_gradient(objective, weights):
    """The gradient in 50 digits."""
    with mpmath.workdps(50):
        total = [
            mpmath.mpf(objective.ridge) * mpmath.mpf(w) + mpmath.mpf(b)
            for w, b in zip(weights.tolist(), objective.linear.tolist(), strict=True)
        ]
        for row, sign in zip(objective.X.tolist(), objective.signs.tolist(), strict=True):
            entries = [mpmath.mpf(x) for x in row] + [mpmath.mpf(objective.intercept_scaling)]
            margin = sign * mpmath.fsum(x * mpmath.mpf(w) for x, w in zip(entries, weights.tolist(), strict=True))
            slope = -sign / (1 + mpmath.exp(margin))
            total = [t + slope * x for t, x in zip(total, entries, strict=True)]
        return mpmath.sqrt(mpmath.fsum(t**2 for t in total)), np.array([float(t) for t in total])


def test_gradient_is_the_derivative_of_the_objective():
    objective = problem()
    weights = np.random.default_rng(1).normal(size=objective.size)
    gradient, _ = objective.certified_gradient(weights)
    numeric = optimize.approx_fprime(weights, lambda w: value(objective, w), 1e-6)
    assert np.allclose(gradient, numeric, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0])
def test_certificate_bounds_the_exact_norm_and_is_not_far_above_it(dtype, size):
    objective = problem(dtype=dtype)
    weights = np.random.default_rng(2).normal(size=objective.size) * size
    _, bound = objective.certified_gradient(weights)
    norm, exact = exact_gradient(objective, weights)
    assert norm <= mpmath.mpf(bound)
    assert bound <= np.linalg.norm(exact) * (1 + 1e-9) + 1e-9


def test_certificate_holds_at_the_optimum_where_rounding_is_all_there_is():
    objective = problem()
    for tolerance in (1e-4, 1e-8, 1e-10):
        norm, _ = exact_gradient(objective, minimise(objective, tolerance=tolerance))
        assert norm <= tolerance


@pytest.mark.parametrize("rows_per_block", [7, 64, 100_000])
def test_blocks_do_not_change_the_gradient(monkeypatch, rows_per_block):
    objective = problem()
    weights = np.ones(objective.size)
    whole, _ = objective.certified_gradient(weights)
    monkeypatch.setattr(convex, "BLOCK_ROWS", rows_per_block)
    assert np.allclose(objective.certified_gradient(weights)[0], whole, atol=1e-12)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("constant", [0.0, 0.7])
@pytest.mark.parametrize(("ridge", "steep"), [(1e-4, 1.0), (1.0, 1000.0), (1e3, 1.0)])
@pytest.mark.parametrize("thinned_rows", [True, False])
def test_every_path_reaches_the_optimum(monkeypatch, dtype, constant, ridge, steep, thinned_rows):
    """With few thinned rows the quasi-Newton search does the work, else the Newton steps do."""
    objective = problem(2_000, 10, ridge, dtype=dtype, constant=constant, steep=steep)
    if thinned_rows:
        monkeypatch.setattr(convex, "LEAST_ROWS", 50)
        monkeypatch.setattr(convex, "FIRST_ROWS_PER_WEIGHT", 5)
        monkeypatch.setattr(convex, "ROWS_PER_WEIGHT", 5)
    weights = minimise(objective, tolerance=1e-6)
    assert objective.certified_gradient(weights)[1] <= 1e-6
    found = optimize.minimize(lambda w: value(objective, w), weights + 0.01, method="BFGS", options={"gtol": 1e-4})
    assert value(objective, weights) <= found.fun + 1e-6


def test_wide_problems_do_without_a_hessian(monkeypatch):
    monkeypatch.setattr(convex, "LARGEST_HESSIAN", 3)
    objective = problem(d=40, ridge=0.1)
    assert objective.certified_gradient(minimise(objective, tolerance=1e-8))[1] <= 1e-8


def test_without_rows_the_tilt_alone_decides():
    full = problem()
    objective = LinearObjective(full.X[:0], full.signs[:0], full.loss, 2.0, full.linear, full.row_norm, 0.7)
    assert np.allclose(minimise(objective, tolerance=1e-9), -full.linear / 2.0)


def test_impossible_tolerance_is_missed_and_says_nothing_of_the_rows():
    with pytest.raises(CertificateMissed, match=r"at most 1e-15$"):
        minimise(problem(), tolerance=1e-15)


def test_curvature_and_slope_are_within_their_bounds():
    margins = np.linspace(-800, 800, 10_001)
    loss = LogisticLoss()
    assert np.abs(loss.slope(margins)).max() <= loss.slope_bound
    assert loss.curvature(margins).max() <= loss.curvature_bound
    assert np.allclose(
        np.gradient(loss.slope(margins), margins)[4_000:6_000], loss.curvature(margins)[4_000:6_000], atol=2e-3
    )
