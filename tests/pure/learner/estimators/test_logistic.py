import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from learner.estimators import logistic
from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.convex import minimise
from learner.estimators.logistic import PrivateLogisticRegression
from learner.linear_model import LinearModel
from privacy.accounting.events import event_from_json
from privacy.errors import CertificateMissed
from privacy.mechanisms.randomness import SecureRandom


def blobs(n=400, d=5, classes=2, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    X = rng.normal(size=(n, d)) + 3 * np.eye(classes, d)[y]
    X /= 1.001 * np.linalg.norm(X, axis=1, keepdims=True)
    return X.astype(dtype), y


@given(
    epsilon=st.floats(0.01, 20),
    regularization=st.floats(1e-3, 1e4),
    method=st.sampled_from(["objective", "output"]),
    adjacency=st.sampled_from(["null", "add_remove", "replace"]),
    n_classes=st.integers(2, 12),
    n_features=st.integers(1, 500),
    norm_bound=st.floats(0.1, 10),
    fit_intercept=st.booleans(),
)
def test_the_price_is_epsilon_whatever_the_parameters(
    epsilon, regularization, method, adjacency, n_classes, n_features, norm_bound, fit_intercept
):
    """Recomputed from the stored event, it never exceeds epsilon and wastes next to nothing of it."""
    estimator = PrivateLogisticRegression(
        epsilon,
        regularization,
        method,
        classes=range(n_classes),
        adjacency=adjacency,
        norm_bound=norm_bound,
        fit_intercept=fit_intercept,
    )
    event = estimator.event_for(n_features)
    assert event_from_json(event.to_json()) == event
    cost = event.cost(adjacency=adjacency)
    assert cost.epsilon <= epsilon
    # Where extra regularisation was needed, half of epsilon at most is left unused by construction.
    floor = 1 - 1e-11 if getattr(event, "extra_regularization", 0) == 0 else 0.98
    assert cost.epsilon >= epsilon * floor * (1 - 1e-11)
    assert cost.delta == 0


@pytest.mark.parametrize("method", ["objective", "output"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fit_keeps_its_promises(method, dtype, n_classes):
    X, y = blobs(classes=n_classes, dtype=dtype)
    estimator = PrivateLogisticRegression(50.0, method=method, classes=list(range(n_classes)))
    assert not estimator.releasable
    expected = estimator.event_for(X.shape[1])
    assert estimator.fit(X, y) is estimator
    assert estimator.privacy_event_ == expected
    assert estimator.gradient_norm_ == estimator.gradient_tolerance
    assert estimator.releasable
    assert not estimator.simulated_
    rows = 1 if n_classes == 2 else n_classes
    assert estimator.coef_.shape == (rows, X.shape[1])
    assert estimator.intercept_.shape == (rows,)
    assert ((estimator.coef_ / estimator.grid) % 1 == 0).all()
    assert estimator.score(X, y) > 0.85
    assert np.allclose(estimator.predict_proba(X).sum(axis=1), 1)


def test_every_fit_draws_new_noise_and_a_seed_only_simulates():
    X, y = blobs()
    first, second = (PrivateLogisticRegression(classes=[0, 1]).fit(X, y).coef_ for _ in range(2))
    assert not np.array_equal(first, second)
    seeded = [PrivateLogisticRegression(classes=[0, 1], random_state=3).fit(X, y) for _ in range(2)]
    assert np.array_equal(seeded[0].coef_, seeded[1].coef_)
    assert seeded[0].simulated_
    assert not seeded[0].releasable


def test_classes_are_declared_and_keep_their_order():
    X, y = blobs(classes=3)
    names = np.array(["b", "c", "a"])
    estimator = PrivateLogisticRegression(1e4, classes=["c", "b", "a"]).fit(X, names[y])
    assert estimator.classes_.tolist() == ["c", "b", "a"]
    assert estimator.score(X, names[y]) > 0.9
    with pytest.raises(ValueError, match="must be declared"):
        PrivateLogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="must be declared"):
        PrivateLogisticRegression().event_for(3)
    with pytest.raises(ValueError, match="not among") as refused:
        PrivateLogisticRegression(classes=["a", "b"]).fit(X, names[y])
    assert "'c'" not in str(refused.value)
    assert PrivateLogisticRegression(random_state=0).fit(X, y).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("method", ["objective", "output"])
@pytest.mark.parametrize("rows", [0, 1, 30])
def test_one_class_and_few_rows_are_answered_like_any_other(method, rows):
    X, _ = blobs(n=30)
    estimator = PrivateLogisticRegression(method=method, classes=[0, 1]).fit(X[:rows], np.ones(rows, dtype=int))
    assert np.isfinite(estimator.coef_).all()
    assert estimator.privacy_event_ == estimator.event_for(X.shape[1])


def test_long_rows_are_refused_and_their_rounding_is_charged():
    X, y = blobs()
    X[7] *= 3
    with pytest.raises(ValueError, match="clip them first"):
        PrivateLogisticRegression(classes=[0, 1]).fit(X, y)
    X[7] /= np.linalg.norm(X[7]) * (1 - 1e-7)
    estimator = PrivateLogisticRegression(classes=[0, 1]).fit(X, y)
    assert estimator.privacy_event_.norm_bound > math.hypot(1 + 1e-7, 1)


def test_a_missed_certificate_outputs_nothing(monkeypatch):
    X, y = blobs()
    estimator = PrivateLogisticRegression(classes=[0, 1], gradient_tolerance=1e-14)
    with pytest.raises(CertificateMissed):
        estimator.fit(X, y)
    assert not hasattr(estimator, "coef_")
    assert not estimator.releasable


def test_the_certificate_covers_the_released_point(monkeypatch):
    """What the output noise is added to is within g / (Lam + Delta) of the minimiser, so noise alone separates them."""
    X, y = blobs(n=2_000)
    solved = []
    monkeypatch.setattr(logistic, "release_on_grid", lambda values, **_: solved.append(values) or values)
    estimator = PrivateLogisticRegression(0.3, classes=[0, 1], random_state=1).fit(X, y)
    monkeypatch.undo()
    finer = PrivateLogisticRegression(0.3, classes=[0, 1], random_state=1, gradient_tolerance=1e-10)
    monkeypatch.setattr(logistic, "release_on_grid", lambda values, **_: solved.append(values) or values)
    finer.fit(X, y)
    allowed = (1e-6 + 1e-10) / estimator.privacy_event_.total_regularization
    assert 0 < np.linalg.norm(solved[0] - solved[1]) <= allowed


METHODS = ["objective", "output"]


@pytest.mark.parametrize("method", METHODS)
def test_a_solver_that_stops_as_soon_as_it_may_stays_within_what_is_charged(monkeypatch, method):
    """The solver is honest and lazy: it walks away from the minimiser for as long as its certificate is good enough."""
    reached = []

    def lazy(objective, *, tolerance):
        found, direction = minimise(objective, tolerance=tolerance / 10), np.eye(objective.size)[0] / objective.ridge
        low, high = 0.0, 2 * tolerance
        for _ in range(40):
            middle = (low + high) / 2
            good = objective.certified_gradient(found + middle * direction)[1] <= tolerance
            low, high = (middle, high) if good else (low, middle)
        reached.append(objective.certified_gradient(found + low * direction)[1])
        return found + low * direction

    monkeypatch.setattr(logistic, "minimise", lazy)
    estimator = PrivateLogisticRegression(1.0, 0.5, method, classes=[0, 1], gradient_tolerance=1e-4)
    event = estimator.fit(*blobs()).privacy_event_
    assert 0.99e-4 < reached[0] <= event.gradient_tolerance == 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_a_long_prior_leaves_the_solver_less_room(monkeypatch, method):
    """Its pull is a product that was rounded: by half a unit in the last place, which the certificate must cover."""
    asked = []
    monkeypatch.setattr(
        logistic, "minimise", lambda objective, *, tolerance: asked.append(tolerance) or np.zeros(objective.size)
    )
    prior = LinearModel(np.full((1, 5), 1e9), np.zeros(1), ("a", "b"))
    estimator = PrivateLogisticRegression(1.0, 0.5, method, classes=[0, 1], prior=prior, gradient_tolerance=1e-4)
    estimator.fit(*blobs())
    assert 0 < asked[0] <= 1e-4 - 2.0**-53 * 0.5 * float(np.linalg.norm(prior.coef))


@given(seed=st.integers(0, 2**32), regularization=st.floats(0.1, 100))
@settings(max_examples=25, deadline=None)
def test_empirical_sensitivity_stays_under_the_stated_one(seed, regularization):
    """Minimisers of random neighbours, null and replaced, without noise."""
    X, y = blobs(n=30, seed=seed)
    for adjacency, other in (("null", (X[1:], y[1:])), ("replace", (np.vstack([-X[:1], X[1:]]), y))):
        event = PrivateLogisticRegression(1.0, regularization, "output", classes=[0, 1], adjacency=adjacency).event_for(
            X.shape[1]
        )
        assert distance(X, y, *other, regularization) <= event.sensitivity_l2(adjacency)


def log_density(weights, X, y, event):
    signs = 2.0 * y - 1
    probability = special.expit(-signs * (X @ weights))
    tilt = X.T @ (signs * probability) - event.total_regularization * weights
    curvature = probability * (1 - probability)
    jacobian = event.total_regularization * np.eye(len(weights)) + X.T @ (curvature[:, None] * X)
    return -np.linalg.norm(tilt) / event.tilt_scale + np.linalg.slogdet(jacobian)[1]


@given(
    seed=st.integers(0, 2**32),
    epsilon=st.floats(0.1, 5),
    regularization=st.floats(0.01, 10),
    dimension=st.integers(1, 4),
    rows=st.integers(1, 6),
    adjacency=st.sampled_from(["null", "replace"]),
)
def test_density_ratio_of_the_minimiser_is_within_its_share_of_epsilon(
    seed, epsilon, regularization, dimension, rows, adjacency
):
    """At outputs near the minimisers and far from them, for one row against its dummy or against another row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, dimension))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(2, size=rows)
    other_X, other_y = (X[1:], y[1:]) if adjacency == "null" else (np.vstack([-X[:1], X[1:]]), y)
    event = PrivateLogisticRegression(
        epsilon, regularization, classes=[0, 1], fit_intercept=False, adjacency=adjacency
    ).event_for(dimension)
    allowed = epsilon - event.output_cost().epsilon
    for size in (0.0, 0.3, 3.0, 30.0, 300.0):
        weights = size * (X[0] if seed % 2 else rng.normal(size=dimension))
        ratio = log_density(weights, X, y, event) - log_density(weights, other_X, other_y, event)
        assert abs(ratio) <= allowed + 1e-9


def test_the_density_ratio_without_the_change_of_variables_is_not():
    """The form of 2008, which gives the whole epsilon to the tilt, is exceeded at a weight of zero."""
    event = replace(
        PrivateLogisticRegression(1.0, 0.01, classes=[0, 1], fit_intercept=False).event_for(1),
        epsilon_prime=1.0,
        extra_regularization=0.0,
    )
    X, y = np.ones((1, 1)), np.ones(1, dtype=int)
    assert log_density(np.zeros(1), X, y, event) - log_density(np.zeros(1), X[1:], y[1:], event) > 2.5


def distance(X, y, other_X, other_y, regularization, **options):
    points = []
    for rows, labels in ((X, y), (other_X, other_y)):
        fitted = LogisticRegressionBaseline(regularization, classes=[0, 1], **options)
        fitted.fit(rows, labels)
        points.append(np.append(fitted.coef_[0], fitted.intercept_[0]))
    return np.linalg.norm(points[0] - points[1])


@pytest.mark.parametrize(("adjacency", "floor"), [("null", 0.85), ("replace", 0.5)])
def test_the_worst_neighbours_come_close_to_the_stated_sensitivity(adjacency, floor):
    """Many rows nearly at right angles to the odd one push the minimiser against its label.

    They come in pairs that cancel but for a small common part, so they hardly add curvature along
    the odd row, whose gradient is then nearly as long as the row. A replacement cannot do
    much better than a removal: no point is steep for both of two opposite rows.
    """
    regularization, pairs, tilt = 50.0, 10_000, 0.01
    push = np.array([[tilt, math.sqrt(1 - tilt**2), 0.0], [tilt, -math.sqrt(1 - tilt**2), 0.0]])
    X = np.vstack([np.repeat(push, pairs, axis=0), [[1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]])
    y = np.append(np.ones(2 * pairs + 1, dtype=int), 0)
    if adjacency == "null":
        other_X, other_y = X[:-1], y[:-1]
    else:
        other_X, other_y = np.vstack([X[:-1], [[0.5, 0.0, math.sqrt(0.75)]]]), np.ones_like(y)
    event = PrivateLogisticRegression(
        1.0, regularization, "output", classes=[0, 1], adjacency=adjacency, fit_intercept=False
    ).event_for(3)
    reached = distance(X, y, other_X, other_y, regularization, fit_intercept=False)
    assert floor * event.sensitivity_l2(adjacency) <= reached <= event.sensitivity_l2(adjacency)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0.0),
        ("epsilon", math.inf),
        ("regularization", -1.0),
        ("method", "both"),
        ("norm_bound", math.nan),
        ("intercept_scaling", 0.0),
        ("adjacency", "none"),
        ("gradient_tolerance", 0.0),
        ("output_epsilon_share", 1.0),
        ("grid", 0.1),
        ("classes", [1]),
        ("classes", [1, 1]),
    ],
)
def test_parameters_out_of_range_are_refused_by_the_price_and_by_the_fit(name, value):
    estimator = PrivateLogisticRegression(**{"classes": [0, 1], name: value})
    X, y = blobs(n=10)
    with pytest.raises(ValueError, match=name if name != "classes" else "distinct"):
        estimator.event_for(5)
    with pytest.raises(ValueError, match=name if name != "classes" else "distinct"):
        estimator.fit(X, y)


def test_messages_hold_no_entry_of_a_record():
    X = np.array([["0.1", "SECRET"], ["0.1", "0.2"]], dtype=object)
    with pytest.raises(ValueError, match="numbers only") as refused:
        PrivateLogisticRegression(classes=[0, 1]).fit(X, [0, 1])
    assert "SECRET" not in str(refused.value)
    assert refused.value.__suppress_context__


def test_the_baseline_is_the_limit_of_a_large_epsilon_and_never_releasable():
    X, y = blobs()
    baseline = LogisticRegressionBaseline(2.0).fit(X, y)
    assert not baseline.releasable
    private = PrivateLogisticRegression(1e9, 2.0, classes=[0, 1], random_state=SecureRandom()).fit(X, y)
    assert np.allclose(baseline.coef_, private.coef_, atol=1e-4)
    assert np.allclose(baseline.intercept_, private.intercept_, atol=1e-4)


@pytest.mark.parametrize("present", [1, 3])
def test_what_it_tells_of_its_steps_are_classes_whether_or_not_they_occur(present):
    X, y = blobs(classes=3)
    told = []
    estimator = PrivateLogisticRegression(2.0, classes=[0, 1, 2], random_state=1)
    estimator.on_step = lambda done, total: told.append((done, total))
    estimator.fit(X, y % present)
    assert told == [(1, 3), (2, 3), (3, 3)]
