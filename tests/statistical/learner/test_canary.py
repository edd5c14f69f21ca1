"""The canary of a release sings for our estimators and falls silent for broken ones.

False-alarm rate: 1e-4 for each estimator, by the canary's own confidence; the seed is fixed.
"""

import numpy as np
import pytest

from learner.canary import fingerprint, send_canary
from learner.estimators.huber_svm import PrivateHuberSVM
from learner.estimators.logistic import PrivateLogisticRegression

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize("estimator_class", [PrivateLogisticRegression, PrivateHuberSVM])
@pytest.mark.parametrize("method", ["objective", "output"])
def test_it_sings_for_sound_estimators(estimator_class, method):
    canary = send_canary(estimator_class(2.0, 1.0, method, classes=["a", "b", "c"], intercept_scaling=0.2))
    assert canary.sings
    assert 0 < canary.audit.epsilon_lower_bound <= canary.charged


class LittleNoise(PrivateLogisticRegression):
    """Charged as its parent, and adds the noise of six times the epsilon."""

    def fit(self, X, y, sample_weight=None):
        louder = PrivateLogisticRegression(
            6 * self.epsilon, self.regularization, classes=[0, 1], fit_intercept=False, random_state=self.random_state
        )
        self.coef_ = louder.fit(X, y).coef_
        return self


def test_it_falls_silent_for_too_little_noise():
    canary = send_canary(LittleNoise(0.5, 1.0))
    assert not canary.sings
    assert canary.audit.epsilon_lower_bound > canary.charged


def test_the_fingerprint_changes_with_what_matters():
    plain = PrivateLogisticRegression(2.0, 1.0)
    assert fingerprint(plain, code="1") == fingerprint(PrivateLogisticRegression(2.0, 1.0), code="1")
    others = [
        fingerprint(plain, code="2"),
        fingerprint(PrivateLogisticRegression(1.0, 1.0), code="1"),
        fingerprint(PrivateHuberSVM(2.0, 1.0), code="1"),
    ]
    assert len({fingerprint(plain, code="1"), *others}) == 4


def test_the_canary_leaves_the_estimator_alone():
    estimator = PrivateLogisticRegression(2.0, 1.0, classes=[0, 1, 2])
    send_canary(estimator, trials=4)
    assert estimator.classes == [0, 1, 2]
    assert not hasattr(estimator, "coef_")
    assert np.isfinite(estimator.epsilon)
