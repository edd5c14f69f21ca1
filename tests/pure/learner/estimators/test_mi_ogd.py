"""Noisy gradient descent, full information and bandit: prices, contributions, the learner's step, stored states."""

import json
import math
import os
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learner.estimators.bandit import (
    BanditGradientBaseline,
    BanditMutualInformationOGD,
    FewAnswersWarning,
    uniform_directions,
)
from learner.estimators.mi_ogd import MutualInformationOGD, OnlineGradientBaseline
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM
from learner.estimators.streaming import Guess
from privacy.accounting.events import event_from_json
from privacy.mechanisms.randomness import SimulationRandom

TRIALS = 100 * int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
NOISY = [MutualInformationOGD, BanditMutualInformationOGD]
ALL = [*NOISY, OnlineGradientBaseline, BanditGradientBaseline]


def blobs(n=400, d=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    X = rng.normal(size=(n, d)) + 4 * np.eye(classes, d)[y]
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def fitted(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewAnswersWarning)
        return estimator.fit(X, y)


@given(
    sigma=st.floats(0.01, 100),
    lipschitz=st.floats(0.1, 10),
    n_classes=st.integers(2, 5),
    n_features=st.integers(1, 200),
    fit_intercept=st.booleans(),
)
def test_full_information_is_charged_by_theorem_1_and_as_zcdp(sigma, lipschitz, n_classes, n_features, fit_intercept):
    estimator = MutualInformationOGD(sigma, lipschitz=lipschitz, classes=range(n_classes), fit_intercept=fit_intercept)
    event = estimator.event_for(n_features)
    assert event_from_json(event.to_json()) == event
    d = (1 if n_classes == 2 else n_classes) * (n_features + fit_intercept)
    cost = event.cost()
    assert cost.rho == pytest.approx(2 * lipschitz**2 / sigma**2)
    assert cost.mutual_information == pytest.approx(d / 2 * math.log1p(lipschitz**2 / (d * sigma**2)))


@given(sigma=st.floats(1, 1000), radius=st.floats(0.5, 50), share=st.floats(0.01, 0.9), n_features=st.integers(1, 30))
def test_bandit_is_charged_by_theorem_3_and_as_zcdp(sigma, radius, share, n_features):
    estimator = BanditMutualInformationOGD(sigma, radius=radius, exploration=share * radius, classes=[0, 1])
    event = estimator.event_for(n_features)
    assert event_from_json(event.to_json()) == event
    d = n_features + 1
    bound = d * 0.5 / (share * radius)
    cost = event.cost()
    assert cost.rho == pytest.approx(2 * bound**2 / sigma**2)
    assert cost.mutual_information == pytest.approx(d / 2 * math.log1p(bound**2 / (d * sigma**2)))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator_class", NOISY)
def test_contributions_stay_under_the_stated_bound_and_reach_it(estimator_class, n_classes, monkeypatch):
    """What enters the learner, noise aside, from users of any length: never above the bound, and almost all of it."""
    steps = []
    original = estimator_class._take

    def take(self, gradient, noise):
        before = self._theta.copy()
        original(self, gradient, np.zeros_like(noise))
        steps.append(before - self._theta)

    monkeypatch.setattr(estimator_class, "_take", take)
    X, y = blobs(n=TRIALS, classes=n_classes)
    X = X * np.random.default_rng(1).choice([0.1, 1.0, 50.0], size=(TRIALS, 1))
    estimator = fitted(estimator_class(classes=list(range(n_classes)), random_state=0), X, y)
    event = estimator.privacy_event_
    stated = math.sqrt(event.cost().rho / 2) * event.sigma
    worst = max(float(np.linalg.norm(step)) for step in steps)
    assert worst <= stated
    assert worst >= 0.99 * stated
    pairs = [np.linalg.norm(a - b) for a, b in pairwise(steps)]
    assert stated <= max(pairs) <= 2 * stated


def test_steps_follow_the_algorithm():
    """The lazy projection of the source, in plain numbers, with the noise set to zero."""
    X, y = blobs(n=30)
    estimator = OnlineGradientBaseline(
        1.0, radius=0.7, horizon=30, classes=[0, 1], fit_intercept=False, average=False
    ).fit(X, y)
    step_size = 0.7 / math.sqrt((1 + 4) * 30)
    theta, w, iterates = np.zeros(4), np.zeros(4), []
    for row, sign in zip(X, 2 * y - 1, strict=True):
        theta += sign * row / (1 + math.exp(sign * (w @ row)))
        w = step_size * theta
        w = w if np.linalg.norm(w) <= 0.7 else 0.7 * w / np.linalg.norm(w)
        iterates.append(w)
    np.testing.assert_allclose(estimator.coef_[0], w, atol=1e-6)
    averaged = OnlineGradientBaseline(1.0, radius=0.7, horizon=30, classes=[0, 1], fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(averaged.coef_[0], np.mean(iterates, axis=0), atol=1e-6)


def test_the_one_point_estimate_points_along_the_gradient():
    """Seeded: the mean of 40,000 estimates at zero weights, 5 sigma from any direction but the separating one."""
    X = np.tile([[0.0, 1.0, 0.0]], (40_000, 1))
    estimator = fitted(
        BanditGradientBaseline(1.0, radius=1.001, exploration=1.0, classes=[0, 1], fit_intercept=False, random_state=0),
        X,
        np.ones(40_000, dtype=int),
    )
    mean = estimator._theta[0] / 40_000
    # Each coordinate of one estimate is at most d F / delta = 1.5 in size.
    assert mean[1] > 5 * 1.5 / 200
    assert np.abs(mean[[0, 2]]).max() < 5 * 1.5 / 200


@pytest.mark.parametrize("estimator_class", ALL)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_learns_and_keeps_its_promises(estimator_class, n_classes):
    X, y = blobs(n=4_000, classes=n_classes)
    bandit = issubclass(estimator_class, BanditMutualInformationOGD)
    options = {"exploration": 1.5} if bandit else {}
    estimator = estimator_class(
        0.5, horizon=4_000, classes=list(range(n_classes)), random_state=1, intercept_scaling=0.2, **options
    )
    assert fitted(estimator, X, y) is estimator
    assert estimator.privacy_event_ == estimator.event_for(4)
    assert estimator.updates_ == 4_000
    assert estimator.score(X, y) > (0.75 if bandit else 0.9)
    assert np.allclose(estimator.predict_proba(X).sum(axis=1), 1)
    assert not estimator.releasable


@pytest.mark.parametrize("estimator_class", NOISY)
def test_secure_noise_can_be_released_and_a_seed_only_simulates(estimator_class):
    X, y = blobs(n=30)
    estimators = [fitted(estimator_class(classes=[0, 1]), X, y) for _ in range(2)]
    assert all(estimator.releasable for estimator in estimators)
    assert not np.array_equal(estimators[0].coef_, estimators[1].coef_)
    seeded = [fitted(estimator_class(classes=[0, 1], random_state=7), X, y) for _ in range(2)]
    assert np.array_equal(seeded[0].coef_, seeded[1].coef_)


@pytest.mark.parametrize("estimator_class", ALL)
def test_learning_goes_on_from_a_stored_state(estimator_class):
    X, y = blobs(n=60)
    first = estimator_class(classes=[0, 1], random_state=1).partial_fit(X[:40], y[:40])
    state = json.loads(json.dumps(first.state()))
    again = estimator_class(classes=[0, 1], random_state=1).resume(state)
    assert np.array_equal(again.coef_, first.coef_)
    assert again.partial_fit(X[40:], y[40:]).updates_ == 60


def test_rows_arrive_in_any_cut():
    """Without noise, one call for all rows and one for each row end at the same weights."""
    X, y = blobs(n=50)
    whole = OnlineGradientBaseline(classes=[0, 1]).fit(X, y)
    single = OnlineGradientBaseline(classes=[0, 1])
    for row, label in zip(X, y, strict=True):
        single.partial_fit(row[None], [label])
    np.testing.assert_allclose(single.coef_, whole.coef_, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_guesses_are_kept_as_json_and_answered_in_any_order(n_classes):
    X, y = blobs(n=600, classes=n_classes)
    options = {"exploration": 1.5, "horizon": 600, "classes": list(range(n_classes)), "random_state": 2}
    estimator = BanditMutualInformationOGD(0.1, **options).start(4)
    for start in range(0, 600, 3):
        asked = [json.loads(json.dumps(estimator.guess(row).to_json())) for row in X[start : start + 3]]
        for stored, label in reversed(list(zip(asked, y[start : start + 3], strict=True))):
            guess = Guess.from_json(stored)
            estimator.learn(guess, confirmed=bool(guess.place == label))
    assert estimator.updates_ == 600
    assert estimator.score(X, y) > 0.6
    inside = estimator.radius - 1.5
    assert np.linalg.norm(estimator.weights_) <= inside * (1 + 1e-12)


def test_public_weights_start_what_noise_then_moves():
    learner = MutualInformationOGD(1.0, radius=5.0, horizon=100, classes=[0, 1], intercept_scaling=0.2, random_state=1)
    learner.start_from([[1.0, -2.0]], [0.1])
    assert learner.coef_.tolist() == [[1.0, -2.0]]
    assert learner.intercept_ == pytest.approx([0.1])
    assert not learner.releasable
    price = learner.privacy_event_
    again = MutualInformationOGD(**learner.get_params()).resume(json.loads(json.dumps(learner.state())))
    steps = [one.partial_fit([[0.6, 0.8]], [1]).weights_ for one in (learner, again)]
    assert np.array_equal(*steps)
    # One step moves little: the start is not forgotten, as it would be if the sum of gradients began at zero.
    assert np.linalg.norm(steps[0] - [[1.0, -2.0, 0.5]]) < 3
    assert learner.privacy_event_ == price == MutualInformationOGD(**learner.get_params()).start(2).privacy_event_


@pytest.mark.parametrize("estimator_class", [MutualInformationOGD, MiniBatchPrivateSVM])
def test_a_start_outside_the_ball_is_drawn_into_it_and_odd_ones_are_refused(estimator_class):
    learner = estimator_class(radius=2.0, classes=[0, 1, 2], fit_intercept=False, random_state=1)
    learner.start_from(np.full((3, 4), 5.0), np.zeros(3))
    assert np.linalg.norm(learner.weights_) == pytest.approx(2.0)
    for coef, intercept in (
        (np.zeros((1, 4)), np.zeros(1)),
        (np.zeros((3, 4)), np.zeros(2)),
        (np.zeros(4), np.zeros(1)),
        (np.full((3, 4), np.nan), np.zeros(3)),
    ):
        with pytest.raises(ValueError, match="weights"):
            learner.start_from(coef, intercept)


def test_confirmations_start_from_zero():
    with pytest.raises(ValueError, match="zero weights"):
        BanditMutualInformationOGD(classes=[0, 1]).start_from([[1.0, 0.0]], [0.0])


def test_few_confirmations_are_warned_about():
    X, y = blobs(n=20)
    with pytest.warns(FewAnswersWarning, match="20 confirmations"):
        BanditMutualInformationOGD(classes=[0, 1]).fit(X, y)


@pytest.mark.parametrize("estimator_class", NOISY)
def test_the_statement_puts_epsilon_before_the_nats(estimator_class):
    line = estimator_class(5.0, classes=[0, 1]).statement(6)
    assert line.index("epsilon") < line.index("nats")
    assert f"rho {estimator_class(5.0, classes=[0, 1]).event_for(6).cost().rho:.4g}" in line


@given(count=st.integers(1, 50), dimension=st.integers(1, 40), seed=st.integers(0, 99))
@settings(deadline=None)
def test_directions_have_length_one(count, dimension, seed):
    vectors = uniform_directions(count, dimension, rng=SimulationRandom(seed))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1)


def test_directions_are_uniform():
    """Seeded; second moments of 50,000 directions in 4 dimensions, 5 sigma around 1/4 and 0."""
    vectors = uniform_directions(50_000, 4, rng=SimulationRandom(5))
    moments = vectors.T @ vectors / 50_000
    assert np.abs(moments - np.eye(4) / 4).max() < 5 * 0.25 / math.sqrt(50_000)
    assert np.abs(vectors.mean(axis=0)).max() < 5 * 0.5 / math.sqrt(50_000)


@pytest.mark.parametrize("estimator_class", NOISY)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sigma", 0.0),
        ("sigma", 2.0**-25),
        ("radius", -1.0),
        ("horizon", 0),
        ("delta", 0.0),
        ("grid", 0.3),
        ("intercept_scaling", 0.0),
    ],
)
def test_parameters_out_of_range_are_refused_by_the_price_and_by_the_fit(estimator_class, name, value):
    estimator = estimator_class(**{"classes": [0, 1], name: value})
    X, y = blobs(n=10)
    with pytest.raises(ValueError, match=name):
        estimator.event_for(4)
    with pytest.raises(ValueError, match=name):
        estimator.fit(X, y)


def test_own_parameters_are_checked():
    with pytest.raises(ValueError, match="lipschitz"):
        MutualInformationOGD(lipschitz=0.0, classes=[0, 1]).event_for(3)
    with pytest.raises(ValueError, match="exploration must lie"):
        BanditMutualInformationOGD(exploration=9.0, classes=[0, 1]).event_for(3)
    with pytest.raises(ValueError, match="must be declared"):
        BanditMutualInformationOGD().start(3)
    with pytest.raises(ValueError, match="must be declared"):
        MutualInformationOGD().event_for(3)
