"""Canary audits of screens and secret samples, beside planted broken twins.

Every bound holds with probability 0.9999 and every draw is seeded.
"""

import os

import numpy as np
import pytest

from learner.linear_model import LinearModel
from learner.strategies.bernoulli_screen import BernoulliScreen
from learner.strategies.secret_sample import SecretSample
from privacy.accounting.counts import class_counts_event
from privacy.accounting.events import SecretSampleEvent
from privacy.evidence import epsilon_lower_bound, one_by_one
from privacy.mechanisms.discrete import DiscreteLaplace
from privacy.mechanisms.randomness import SimulationRandom

MORE = int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
pytestmark = pytest.mark.statistical
ROW = np.ones((1, 1))
AXIS = LinearModel(np.ones((1, 1)), np.zeros(1), ("no", "yes"))


def found(mechanism, data, neighbour, *, trials):
    rng = SimulationRandom(20_250_401)
    return epsilon_lower_bound(mechanism, data, neighbour, trials=trials * MORE, confidence=0.9999, rng=rng)


@pytest.mark.parametrize("screen", [BernoulliScreen(0.6, 0.2), BernoulliScreen(0.9, 0.5)])
def test_screens(screen):
    """One coin for a record on the boundary and for one far from it."""

    def coins(position, trials, rng):
        X = np.full((trials, 1), position, dtype=np.float32)
        return screen.decide(X, np.arange(trials), AXIS, rng).astype(float)

    charge = screen.event_for(pool_size=1, picks=1, series="single").cost().epsilon
    assert 0.8 * charge < found(coins, 0.0, 1.0, trials=60_000) <= charge


@pytest.mark.parametrize(("hidden", "sound"), [(True, True), (False, False)])
def test_secret_samples(hidden, sound):
    """A noisy count of a secret quarter of the pool; the twin counts everybody and charges the amplified price."""
    sample = SecretSample(0.25)
    counted = class_counts_event(2.0, cells=1, counted=1)
    noise = DiscreteLaplace(counted.scale)

    def release(row, rng):
        chosen = len(sample.query(np.zeros((1, 1), np.float32), np.arange(1), None, 1, rng)) if hidden else 1
        return noise.release(np.array([chosen * row[0, 0]], dtype=np.int64), rng=rng)[0]

    event = sample.release_event(counted)
    assert isinstance(event, SecretSampleEvent)
    charge = event.cost().epsilon
    bound = found(one_by_one(release), ROW, 0 * ROW, trials=20_000)
    assert (0.8 * charge < bound <= charge) if sound else bound > 1.5 * charge
