"""Only estimators that add noise have a name that a project may store."""

import numpy as np
import pytest

from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.catalogue import words_for
from learner.estimators.huber_svm import HuberSVMBaseline
from learner.estimators.kinds import KINDS, Training, estimator_for
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM, MiniBatchSVMBaseline
from learner.linear_model import LinearModel

SHAPE = {"classes": [0, 1], "norm_bound": 1.0, "intercept_scaling": 0.2}
TWINS = (LogisticRegressionBaseline, HuberSVMBaseline, MiniBatchSVMBaseline)


def training_of(name):
    return Training(2.0, delta=1e-6 if name.endswith("gaussian") else 0.0, regularization=3.0, smoothing=0.75)


@pytest.mark.parametrize("name", KINDS)
def test_every_name_trains_with_noise_at_the_price_it_tells(name):
    estimator = estimator_for(name, training_of(name), **SHAPE)
    assert not isinstance(estimator, TWINS)
    cost = estimator.event_for(3).cost()
    assert 2.0 * (1 - 1e-6) <= cost.epsilon <= 2.0
    assert (cost.delta > 0) == name.endswith("gaussian")
    X, y = np.array([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]]), np.array([0, 1])
    if isinstance(estimator, MiniBatchPrivateSVM):
        estimator.fit_slots(X, y, slots=np.array([4, 0]), n_slots=5)
    else:
        assert getattr(estimator, "smoothing", 0.75) == 0.75
        estimator.fit(X, y)
    assert estimator.releasable
    assert words_for(name)


@pytest.mark.parametrize("name", ["logistic_baseline", "LogisticRegressionBaseline", "huber_svm_baseline", ""])
def test_a_twin_without_noise_has_no_name(name):
    with pytest.raises(ValueError, match="no estimator that may be released"):
        estimator_for(name, training_of(name), **SHAPE)


def test_the_release_before_is_what_convex_estimators_lean_on():
    prior = LinearModel(np.ones((1, 3)), np.zeros(1), ("a", "b"))
    assert estimator_for("huber_svm", training_of("huber_svm"), prior=prior, **SHAPE).prior is prior
    assert estimator_for("minibatch_svm", training_of("minibatch_svm"), prior=prior, **SHAPE).step_size == 4.0
