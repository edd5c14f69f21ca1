"""Weights are made of noisy answers alone: while these are held, other rows and another number of them move nothing."""

import numpy as np
import pytest

from dpal.recompute import recompute
from dpal.recompute.transcript import Transcript
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.linear_model import LinearModel
from privacy.mechanisms import gradient_steps
from privacy.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from privacy.mechanisms.k_norm import EuclideanNoise

RELEASES = (DiscreteGaussian, DiscreteLaplace, EuclideanNoise)
PRIOR = LinearModel(np.linspace(-1, 1, 12).reshape(3, 4), np.zeros(3), ("a", "b", "c"), "softmax")
PURE = {
    "softmax steps": lambda **options: PrivateSoftmaxSteps(2.0, delta=1e-6, steps=6, **options),
    "softmax steps from a prior": lambda **options: PrivateSoftmaxSteps(2.0, steps=5, prior=PRIOR, **options),
    "softmax steps about no mean": lambda **options: PrivateSoftmaxSteps(2.0, steps=5, center_share=0.0, **options),
}


def records(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) + 3 * np.eye(3, 4)[y] + seed
    return X * rng.uniform(0.5, 0.999, size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True), y


def weights_of(fitted):
    return np.concatenate([fitted.coef_.ravel(), fitted.intercept_])


def held_weights(make, first, second):
    """Fit to the first rows, then to the second under the very answers that mechanisms released of the first."""
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        for mechanism in RELEASES:

            def note(noise, values, *, release=mechanism.release, **options):
                kept.append(release(noise, values, **options))
                return kept[-1].copy()

            patch.setattr(mechanism, "release", note)
        before = weights_of(make().fit(*first))
    with pytest.MonkeyPatch.context() as patch:
        for mechanism in RELEASES:
            patch.setattr(mechanism, "release", lambda noise, values, **options: kept.pop(0).copy())
        after = weights_of(make().fit(*second))
    return before, after, kept


def is_pure(make):
    """Whether weights stay bit for bit as they are when rows, labels and their number change under held answers."""
    first = records(60, 1)
    for second in (records(60, 2), records(45, 1), records(0, 1)):
        try:
            before, after, left = held_weights(make, first, second)
        except IndexError:
            return False
        if left or not (before == after).all():
            return False
    fitted = make().fit(*first)
    again = recompute(Transcript.from_json(fitted.transcript_.to_json()))
    return bool((np.concatenate([again.coef.ravel(), again.intercept]) == weights_of(fitted)).all())


@pytest.mark.parametrize("name", PURE)
def test_weights_are_made_of_released_answers_alone(name):
    assert is_pure(lambda: PURE[name](classes=[0, 1, 2], random_state=3))


class Steps(PrivateSoftmaxSteps):
    """A copy in which a fault is planted."""

    def _queries(self, rows, labels, classes, event, rng):
        self.peeked_ = rows
        return super()._queries(rows, labels, classes, event, rng)


class RowCountInWeights(Steps):
    def fit(self, X, y):
        super().fit(X, y)
        self.coef_ = self.coef_ + 1e-3 * len(X)
        return self


class StepLengthOfTrueRows(Steps):
    def _learn(self, public, session):
        return super()._learn({**public, "row_norm": np.linalg.norm(self.peeked_, axis=1).mean()}, session)


class CentreOfTrueRows(Steps):
    def _learn(self, public, session):
        true = self.peeked_.mean(axis=0)

        class Peeking:
            def ask(self, query, *given):
                answer = session.ask(query, *given)
                return np.append(true * 60, answer[-1]) if query == "row_sum" else answer

        return super()._learn(public, Peeking())


class StopsEarlyOnRows(Steps):
    def _learn(self, public, session):
        return super()._learn({**public, "steps": public["steps"] - (len(self.peeked_) < 50)}, session)


def noisy_steps_without(name):
    """Return a copy of the mechanism that tells the count or the sum of rows as it is."""

    class Exact(gradient_steps.NoisySteps):
        def __init__(self, rows, event, *, rng):
            super().__init__(rows, event, rng=rng)
            setattr(self, name, float(len(rows)) if name == "count" else rows.sum(axis=0))

    return Exact


@pytest.mark.parametrize("fault", [RowCountInWeights, StepLengthOfTrueRows, CentreOfTrueRows, StopsEarlyOnRows])
def test_what_an_estimator_learns_beside_its_answers_is_found(fault):
    assert not is_pure(lambda: fault(2.0, steps=6, classes=[0, 1, 2], random_state=3))
    assert is_pure(lambda: Steps(2.0, steps=6, classes=[0, 1, 2], random_state=3))


@pytest.mark.parametrize("name", ["count", "row_sum"])
def test_an_answer_of_steps_without_noise_is_found(name, monkeypatch):
    monkeypatch.setattr(gradient_steps, "NoisySteps", noisy_steps_without(name))
    assert not is_pure(lambda: PURE["softmax steps"](classes=[0, 1, 2], random_state=3))
