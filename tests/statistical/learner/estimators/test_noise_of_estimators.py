"""Every estimator adds the noise of its own event: on rows that say nothing the weights are the noise and nothing else.

Drawn by the samplers of a release from the operating system, so nothing is seeded. Each test stands within 5 sigma
(false alarm 6e-7); the same draws stand 9 sigma or more from a scale 8 % off (escape 3e-5), and are refused for it.
"""

import math
import os
from dataclasses import replace

import numpy as np
import pytest

from learner.estimators.label_sets import PrivateLabelSets
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.sums import PrivateSums
from learner.papers.ghassemi_curves import PrivateHuberSVM

MORE = int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
WIDTH = 250
CONVEX = [PrivateLogisticRegression, PrivateHuberSVM]
pytestmark = pytest.mark.statistical


def accepted(z_score):
    """Return which of three claimed scales the draws are compatible with; the first is the true one."""
    return [factor for factor in (1.0, 1.08, 0.92) if abs(z_score(factor)) < 5]


def normal(draws, sigma):
    """Judge by the sum of squares whether coordinates have this standard deviation."""
    return accepted(lambda factor: (np.mean(draws**2) / (sigma * factor) ** 2 - 1) * math.sqrt(draws.size / 2))


def lengths(draws, scale):
    """Judge whether the rows' lengths are Gamma distributed with their dimension and this scale."""
    total, shape = float(np.linalg.norm(draws, axis=1).sum()), draws.size
    return accepted(lambda factor: (total / (scale * factor) - shape) / math.sqrt(shape))


def sizes(draws, scale):
    """Judge whether entries have the mean size of Laplace noise."""
    return accepted(lambda factor: (np.abs(draws).mean() / (scale * factor) - 1) * math.sqrt(draws.size))


def weights_of_nothing(estimator_class, method, *, classes=3, fits=20, **options):
    """Fit on no rows at all and return the event and all weights, a row for each model."""
    estimator = estimator_class(
        1.5,
        2.0,
        method,
        classes=range(classes),
        fit_intercept=False,
        **options,
    )
    nothing = np.zeros((0, WIDTH)), np.zeros(0, dtype=int)
    weights = np.concatenate([estimator.fit(*nothing).coef_.copy() for _ in range(fits * MORE)])
    assert estimator.event_for(WIDTH) == estimator.privacy_event_
    return estimator.privacy_event_, weights


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator_class", CONVEX)
class TestConvex:
    """The minimiser without rows is minus the tilt over the total regularisation."""

    @pytest.mark.one_in(4)
    def test_gamma_norm_tilt(self, estimator_class, classes):
        event, weights = weights_of_nothing(estimator_class, "objective", classes=classes, fits=80 // classes)
        assert event.tilt_scale == pytest.approx(event.gradient_bound / event.epsilon_prime)
        assert lengths(-event.total_regularization * weights, event.tilt_scale) == [1.0]

    @pytest.mark.one_in(4)
    def test_output_noise(self, estimator_class, classes):
        event, weights = weights_of_nothing(estimator_class, "output", classes=classes, fits=80 // classes)
        assert lengths(weights, event.noise_scale) == [1.0]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("estimator_class", CONVEX)
def test_noise_that_hides_where_the_solver_stopped(estimator_class):
    """With a loose certificate and a small share of epsilon it is thousands of times as large as what it hides."""
    event, weights = weights_of_nothing(
        estimator_class, "objective", gradient_tolerance=1.0, output_epsilon_share=1e-4, grid=2.0**-20
    )
    assert event.output_scale > 1000 * math.sqrt(WIDTH) / event.total_regularization
    assert sizes(weights, event.output_scale) == [1.0]


@pytest.mark.parametrize("moment_share", [0.0, 0.3])
def test_sums_of_nothing(moment_share):
    """All class sums, and the moments on and above their diagonal."""
    estimator = PrivateSums(1.5, delta=1e-5, classes=range(90), moment_share=moment_share, model="prototypes")
    nothing = np.zeros((0, WIDTH)), np.zeros(0, dtype=int)
    draws = [estimator.fit(*nothing).sums_ for _ in range(MORE)]
    event = estimator.event_for(WIDTH)
    assert estimator.privacy_event_ == event
    assert normal(np.concatenate([sums.class_sums.ravel() for sums in draws]), event.class_sigma) == [1.0]
    if moment_share:
        above = np.concatenate([sums.moments[np.triu_indices(WIDTH + 1, 1)] for sums in draws])
        assert normal(above, event.moment_sigma * math.sqrt(0.5)) == [1.0]
    else:
        assert all(sums.moments is None for sums in draws)


@pytest.mark.parametrize("moment_share", [0.0, 0.3])
def test_label_sets_of_nothing(moment_share):
    """All class sums and that of all rows, and the moments above their diagonal; seven tenths would be refused."""
    options = {"delta": 1e-5, "labels_per_record": 4, "moment_share": moment_share, "model": "prototypes"}
    estimator = PrivateLabelSets(1.5, classes=range(90), **options)
    nothing = np.zeros((0, WIDTH)), np.zeros((0, 90), dtype=bool)
    draws = [estimator.fit(*nothing).sums_ for _ in range(MORE)]
    event = estimator.event_for(WIDTH)
    assert estimator.privacy_event_ == event
    sums = np.concatenate([each.class_sums.ravel() for each in draws])
    assert len(sums) == MORE * 91 * (WIDTH + 1)
    assert normal(sums, event.class_sigma) == [1.0]
    assert normal(0.7 * sums, event.class_sigma) == []
    if moment_share:
        above = np.concatenate([each.moments[np.triu_indices(WIDTH + 1, 1)] for each in draws])
        assert normal(above, event.moment_sigma * math.sqrt(0.5)) == [1.0]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("estimator_class", CONVEX)
@pytest.mark.parametrize("method", ["objective", "output"])
def test_less_noise_than_the_event_names_is_refused(estimator_class, method):
    """The planted twin draws seven tenths of the noise of every model."""
    names = {"objective": ("epsilon_prime", 1 / 0.7), "output": ("noise_scale", 0.7)}

    class Quieter(estimator_class):
        def _release(self, rows, signs, prior, event, rng):
            name, factor = names[self.method]
            return super()._release(rows, signs, prior, replace(event, **{name: factor * getattr(event, name)}), rng)

    Quieter.__init__ = estimator_class.__init__
    event, weights = weights_of_nothing(Quieter, method, fits=10)
    judged = {
        "objective": lambda: lengths(event.total_regularization * weights, event.tilt_scale),
        "output": lambda: lengths(weights, event.noise_scale),
    }[method]()
    assert judged == []
