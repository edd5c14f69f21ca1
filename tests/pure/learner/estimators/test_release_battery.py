"""What every estimator and its twin promise: a seed or a missing noise can never be released, prices come first."""

import numpy as np
import pytest
from sklearn.base import clone

from learner.estimators.bandit import BanditGradientBaseline, BanditMutualInformationOGD
from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.huber_svm import HuberSVMBaseline, PrivateHuberSVM
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.mi_ogd import MutualInformationOGD, OnlineGradientBaseline
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM, MiniBatchSVMBaseline
from privacy.accounting.events import event_from_json
from privacy.mechanisms.randomness import RandomSource, SecureRandom, SimulationRandom

pytestmark = pytest.mark.filterwarnings("ignore::learner.estimators.bandit.FewAnswersWarning")
PRIVATE = {
    "objective": lambda **options: PrivateLogisticRegression(2.0, **options),
    "gaussian": lambda **options: PrivateLogisticRegression(2.0, method="gaussian", delta=1e-5, **options),
    "output": lambda **options: PrivateLogisticRegression(2.0, method="output", **options),
    "huber": lambda **options: PrivateHuberSVM(2.0, **options),
    "huber gaussian": lambda **options: PrivateHuberSVM(2.0, method="gaussian", delta=1e-5, **options),
    "huber output": lambda **options: PrivateHuberSVM(2.0, method="output", **options),
    "batches": lambda **options: MiniBatchPrivateSVM(2.0, **options),
    "gaussian batches": lambda **options: MiniBatchPrivateSVM(2.0, noise="gaussian", delta=1e-5, **options),
    "gradients": lambda **options: MutualInformationOGD(3.0, **options),
    "bandit": lambda **options: BanditMutualInformationOGD(30.0, **options),
}
STREAMING = ("batches", "gaussian batches", "gradients", "bandit")
TWINS = {
    "logistic": lambda **options: LogisticRegressionBaseline(**options),
    "huber": lambda **options: HuberSVMBaseline(**options),
    "batches": lambda **options: MiniBatchSVMBaseline(**options),
    "gradients": lambda **options: OnlineGradientBaseline(**options),
    "bandit": lambda **options: BanditGradientBaseline(**options),
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


def test_the_price_is_known_before_a_row_is_read(make, n_classes):
    X, y = records(n_classes)
    estimator = make(classes=list(range(n_classes)))
    before = estimator.event_for(X.shape[1])
    assert estimator.fit(X, y).privacy_event_ == before
    assert event_from_json(before.to_json()) == before
    cost = before.cost()
    assert cost.epsilon <= 2.0 or cost.rho > 0


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


@pytest.mark.parametrize("name", STREAMING)
def test_a_seed_stays_unreleasable_after_a_crash_and_secure_updates(name, n_classes):
    X, y = records(n_classes)
    classes = list(range(n_classes))
    simulated = PRIVATE[name](classes=classes, random_state=1).partial_fit(X[:20], y[:20])
    resumed = PRIVATE[name](classes=classes).resume(simulated.state())
    assert not resumed.releasable
    assert not resumed.partial_fit(X[20:], y[20:]).releasable
    secure = PRIVATE[name](classes=classes).partial_fit(X[:20], y[:20])
    assert secure.releasable
    assert PRIVATE[name](classes=classes).resume(secure.state()).releasable
    assert not PRIVATE[name](classes=classes, random_state=1).resume(secure.state()).releasable


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
