"""What every estimator and its twin promise: a seed or a missing noise can never be released, prices come first."""

import numpy as np
import pytest
from sklearn.base import clone

from dpal.recompute import recompute
from dpal.recompute.transcript import Transcript
from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.running_sums import RunningSums
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.estimators.sums import PrivateSums
from learner.papers.ghassemi_curves import HuberSVMBaseline, PrivateHuberSVM
from privacy.accounting.events import event_from_json
from privacy.mechanisms.randomness import RandomSource, SecureRandom, SimulationRandom

PRIVATE = {
    "objective": lambda **options: PrivateLogisticRegression(2.0, **options),
    "output": lambda **options: PrivateLogisticRegression(2.0, method="output", **options),
    "huber": lambda **options: PrivateHuberSVM(2.0, **options),
    "huber output": lambda **options: PrivateHuberSVM(2.0, method="output", **options),
    "sums": lambda **options: PrivateSums(2.0, delta=1e-6, **options),
    "softmax steps": lambda **options: PrivateSoftmaxSteps(2.0, delta=1e-6, steps=5, **options),
}
TWINS = {
    "logistic": lambda **options: LogisticRegressionBaseline(**options),
    "huber": lambda **options: HuberSVMBaseline(**options),
}


def records(n_classes, n=60, d=4):
    rng = np.random.default_rng(7)
    y = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, d)) + 3 * np.eye(n_classes, d)[y]
    return X / (1.001 * np.linalg.norm(X, axis=1, keepdims=True)), y


@pytest.fixture(params=[2, 3], ids=["binary", "three"])
def n_classes(request):
    return request.param


@pytest.fixture(params=PRIVATE)
def make(request):
    return PRIVATE[request.param]


def test_secure_noise_can_be_released_and_a_seed_never(make, n_classes):
    X, y = records(n_classes)
    classes = list(range(n_classes))
    fresh = make(classes=classes)
    assert not fresh.releasable
    assert fresh.fit(X, y).releasable
    for seed in (1, np.random.default_rng(1), SimulationRandom(1)):
        simulated = make(classes=classes, random_state=seed).fit(X, y)
        assert not simulated.releasable
        assert simulated.simulated_
    assert not clone(fresh).releasable


@pytest.mark.parametrize("name", PRIVATE)
def test_the_price_is_known_before_a_row_is_read(name, n_classes):
    X, y = records(n_classes)
    estimator = PRIVATE[name](classes=list(range(n_classes)))
    before = estimator.event_for(X.shape[1])
    assert estimator.fit(X, y).privacy_event_ == before
    assert event_from_json(before.to_json()) == before
    assert 1.9 < before.cost().epsilon <= 2.0


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("width", [np.float32, np.float64])
def test_a_row_a_hair_longer_than_declared_is_refused(name, width):
    """What is charged is the declared length and the rounding of single precision, which is less than a hair."""
    X, y = records(2)
    X[31] /= np.linalg.norm(X[31])
    X = X.astype(width)
    assert PRIVATE[name](classes=[0, 1]).fit(X, y).releasable
    X[31] *= 1 + 4e-6
    refused = PRIVATE[name](classes=[0, 1])
    with pytest.raises(ValueError, match="rows must have a norm of at most 1"):
        refused.fit(X, y)
    assert not refused.releasable


def test_classes_are_declared_and_never_learned(make):
    X, y = records(2)
    with pytest.raises(ValueError, match="declared"):
        make().fit(X, y)


def test_probabilities_are_computed_from_released_weights_alone(make, n_classes):
    X, y = records(n_classes)
    fitted = make(classes=list(range(n_classes))).fit(X, y)
    bare = make(classes=list(range(n_classes)))
    bare.coef_, bare.intercept_ = fitted.coef_.copy(), fitted.intercept_.copy()
    bare.classes_, bare.n_features_in_ = fitted.classes_, fitted.n_features_in_
    shares = fitted.predict_proba(X)
    np.testing.assert_array_equal(bare.predict_proba(X), shares)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (fitted.classes_[shares.argmax(axis=1)] == fitted.predict(X)).all()


def test_a_seed_stays_unreleasable_after_a_crash_and_secure_updates(n_classes):
    X, y = records(n_classes)
    classes = list(range(n_classes))

    def make(**options):
        return RunningSums(2.0, delta=1e-6, updates=4, **options)

    first, second = (X[:20], y[:20]), (X[20:], y[20:])
    simulated = make(classes=classes, random_state=1).start(X.shape[1]).update([first])
    resumed = make(classes=classes).resume(simulated.state())
    assert not resumed.releasable
    assert not resumed.update([first, second]).releasable
    secure = make(classes=classes).start(X.shape[1]).update([first])
    assert secure.releasable
    assert make(classes=classes).resume(secure.state()).releasable
    assert not make(classes=classes, random_state=1).resume(secure.state()).releasable


@pytest.mark.parametrize("name", TWINS)
def test_twins_without_noise_can_never_be_released(name, n_classes):
    X, y = records(n_classes)
    twin = TWINS[name](classes=list(range(n_classes)))
    assert type(twin).releasable is False
    fitted = twin.fit(X, y)
    assert fitted.releasable is False
    assert fitted.predict(X).shape == y.shape


def test_the_two_sources_share_an_interface_and_only_one_is_a_simulation():
    assert (SecureRandom.simulated, SimulationRandom.simulated) == (False, True)
    assert issubclass(SecureRandom, RandomSource)
    assert issubclass(SimulationRandom, RandomSource)
    assert not issubclass(SimulationRandom, SecureRandom)


def test_weights_are_recomputed_from_the_transcript_alone(make, n_classes):
    fitted = make(classes=list(range(n_classes))).fit(*records(n_classes))
    again = recompute(Transcript.from_json(fitted.transcript_.to_json()))
    assert np.array_equal(again.coef, fitted.coef_)
    assert np.array_equal(again.intercept, fitted.intercept_)


# What any further estimator of a pool is held to, made from its declaration (`test_new_estimator.py`).
BATTERY = (
    test_secure_noise_can_be_released_and_a_seed_never,
    test_classes_are_declared_and_never_learned,
    test_probabilities_are_computed_from_released_weights_alone,
    test_weights_are_recomputed_from_the_transcript_alone,
)
