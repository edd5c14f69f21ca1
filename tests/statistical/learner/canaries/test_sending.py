"""The canary of a release sings for our estimators and falls silent for broken ones.

The noise is the operating system's, by the samplers of a release, so no draw is seeded. False-alarm rate: 1e-6 a
canary, by its own confidence, and less in `make test`. A twin with half the noise escapes less often than once in a
hundred runs.
"""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from learner.estimators.label_sets import PrivateLabelSets
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.running_sums import RunningSums
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.estimators.span_crf import PrivateSpanCrf
from learner.estimators.sums import PrivateSums
from learner.papers.ghassemi_curves import PrivateHuberSVM
from learner.releases import canaries as canary_room
from learner.releases.canaries import LOSS, TRIALS, fingerprint, plain_parameters, send_canary, stage_for
from privacy.accounting.events import MinibatchSgdEvent, ObjectivePerturbationEvent
from privacy.mechanisms.k_norm import EuclideanNoise
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from tests.evidence.report import CANARY

# `make evidence` sends every canary twenty times.
CANARIES = int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
SCALES = {"objective": "epsilon_prime", "output": "noise_scale"}
pytestmark = pytest.mark.statistical


def convex(estimator_class, method, epsilon=2.0, **options):
    given = {"intercept_scaling": 0.2, "classes": ["a", "b", "c"]}
    return estimator_class(epsilon, 1.0, method, **given | options)


def quieter(estimator, factor=0.5):
    """Return an estimator charged as its parent, with `factor` times its noise."""
    parent = type(estimator)

    class Quieter(parent):
        def _release(self, rows, signs, prior, event, rng):
            objective = isinstance(event, ObjectivePerturbationEvent)
            name = SCALES[self.method]
            changed = getattr(event, name) * (1 / factor if objective else factor)
            return super()._release(rows, signs, prior, replace(event, **{name: changed}), rng)

    summing = parent if issubclass(parent, PrivateSums) else PrivateSums

    class QuieterSums(summing):
        def event_for(self, n_features):
            return summing._event(self, n_features, len(self.classes))

        def _event(self, n_features, n_classes):
            event = super()._event(n_features, n_classes)
            return replace(event, moment_sigma=factor * event.moment_sigma, class_sigma=factor * event.class_sigma)

    class QuieterRunningSums(RunningSums):
        def event_for(self, n_features):
            return RunningSums._event(self, n_features, len(self.classes))

        def _event(self, n_features, n_classes):
            event = super()._event(n_features, n_classes)
            sums = event.sums
            less = replace(sums, moment_sigma=factor * sums.moment_sigma, class_sigma=factor * sums.class_sigma)
            return replace(event, sums=less)

    class QuieterSteps(PrivateSoftmaxSteps):
        def event_for(self, n_features):
            return PrivateSoftmaxSteps._event(self, n_features, len(self.classes))

        def _event(self, n_features, n_classes):
            event = super()._event(n_features, n_classes)
            return replace(event, sigma=factor * event.sigma, count_sigma=factor * event.count_sigma)

    class QuieterSpans(PrivateSpanCrf):
        def event_for(self, n_features=None):
            return PrivateSpanCrf._steps_event(self, self.epsilon, self.delta)

        def _steps_event(self, *given, **options):
            event = super()._steps_event(*given, **options)
            return replace(event, sigma=factor * event.sigma, count_sigma=factor * event.count_sigma)

    twins = {
        PrivateSpanCrf: QuieterSpans,
        summing: QuieterSums,
        PrivateSoftmaxSteps: QuieterSteps,
        RunningSums: QuieterRunningSums,
    }
    quieter_class = twins.get(parent, Quieter)
    quieter_class.__init__ = parent.__init__
    return quieter_class(**estimator.get_params())


ESTIMATORS = {
    **{
        f"{estimator_class.__name__}-{method}": convex(estimator_class, method)
        for estimator_class in (PrivateLogisticRegression, PrivateHuberSVM)
        for method in SCALES
    },
    "little epsilon": convex(PrivateLogisticRegression, "objective", 0.05),
    "replaced rows": convex(PrivateLogisticRegression, "objective", adjacency="replace"),
    "much epsilon": convex(PrivateHuberSVM, "objective", 12.0),
    "sums": PrivateSums(1.0, classes=[0, 1, 2]),
    "several labels": PrivateLabelSets(1.0, labels_per_record=3, classes=[0, 1, 2, 3]),
    "several labels, class sums alone": PrivateLabelSets(0.2, labels_per_record=2, moment_share=0.0, classes=[0, 1]),
    "class sums alone": PrivateSums(0.1, moment_share=0.0, classes=[0, 1, 2]),
    "softmax steps": PrivateSoftmaxSteps(1.0, classes=[0, 1, 2]),
    "running sums": RunningSums(1.0, classes=[0, 1, 2]),
    "spans": PrivateSpanCrf(1.0, types=["name", "day"]),
}


# One in `make test`, for a canary takes some seconds; the others in `make test-slow`.
QUICK = ("several labels, class sums alone",)
EVERY = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ESTIMATORS]


@pytest.mark.parametrize("name", EVERY)
def test_it_sings_for_sound_estimators(name, record_property, monkeypatch):
    """And finds a good part of what is charged, so that it would find more. False alarm: < 1e-9 a canary."""
    monkeypatch.setattr(canary_room, "CONFIDENCE", 1 - 1e-9)
    canaries = [send_canary(ESTIMATORS[name]) for _ in range(max(1, CANARIES // 4))]
    note(record_property, name, canaries, halved=False)
    assert all(canary.sings for canary in canaries)
    assert all(0.4 * canary.charged < canary.epsilon_lower_bound for canary in canaries)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_it_falls_silent_for_half_the_noise(name, record_property):
    canaries = [send_canary(quieter(ESTIMATORS[name])) for _ in range(CANARIES)]
    note(record_property, name, canaries, halved=True)
    assert not any(canary.sings for canary in canaries)


def note(record_property, name, canaries, *, halved):
    """Tell the report of evidence what was found beside what is charged."""
    for canary in canaries:
        told = {"name": name, "halved": halved, "charged": canary.charged, "bound": canary.epsilon_lower_bound}
        record_property(CANARY, json.dumps(told | {"trials": canary.trials}))


class Unheard:
    """An estimator nobody built a stage for: noise of scale 1 on a mean, charged as asked."""

    def __init__(self, epsilon=1.0, norm_bound=1.0, random_state=None):
        self.epsilon, self.norm_bound, self.random_state = epsilon, norm_bound, random_state

    def get_params(self, deep=True):
        return {"epsilon": self.epsilon, "norm_bound": self.norm_bound, "random_state": self.random_state}

    def set_params(self, **values):
        self.__dict__.update(values)
        return self

    def fit(self, X, y):
        self.coef_ = EuclideanNoise(1.0).release(np.asarray(X).sum(axis=0), grid=2.0**-30, rng=SecureRandom())[None]
        return self

    def event_for(self, n_features):
        return MinibatchSgdEvent(1 / self.epsilon, n_features)


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("epsilon", "sings"), [(1.5, True), (0.4, False)])
def test_an_estimator_without_a_stage_is_asked_for_the_loss_of_one_row(epsilon, sings):
    # Its true loss is 1: with eight times the fits the evidence is far above the smaller charge.
    canary = send_canary(Unheard(epsilon), trials=8 * TRIALS)
    assert canary.charged == pytest.approx(epsilon)
    assert canary.sings == sings


@pytest.mark.slow
def test_every_draw_is_the_operating_systems(monkeypatch):
    """No seed has a part in it, though the estimator that is handed over has one."""
    asked = []
    real = SecureRandom.words
    monkeypatch.setattr(SecureRandom, "words", lambda self, count: asked.append(count) or real(self, count))
    monkeypatch.setattr(SimulationRandom, "words", lambda *_: pytest.fail("a seeded draw"))
    monkeypatch.setattr("privacy.mechanisms.discrete._simulated_gaussian", lambda *_: pytest.fail("a simulation"))
    for estimator in ESTIMATORS.values():
        seeded = clone(estimator).set_params(random_state=7)
        first, second = (send_canary(seeded, trials=20) for _ in range(2))
        assert first.event != second.event
    assert asked


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_stage_is_charged_what_a_release_is(name):
    """One record's share of the canaries' charge is within the whole charge, at the delta of the estimator."""
    estimator = ESTIMATORS[name]
    stage = stage_for(estimator)
    cost = clone(estimator).set_params(**plain_parameters(estimator)).event_for(1).cost()
    assert 0 < stage.epsilon(stage.promised) <= cost.epsilon * (1 + 1e-9)
    assert stage.promised == pytest.approx(LOSS, rel=0.6)
    assert stage.epsilon(1.01 * stage.promised) > stage.epsilon(stage.promised) > stage.epsilon(0.9 * stage.promised)


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
