"""An audit of all releases of an epoch stays under its one charge, and finds twins that pay for one release alone.

Every bound holds with probability 0.9999, so a sound mechanism fails once in 10,000 seeds.
"""

import os

import numpy as np
import pytest

from privacy.accounting.sums import PARTS, RunningSumsEvent, charged_delta, running_sums_event, sums_event, sums_mu
from privacy.evidence import epsilon_lower_bound, one_by_one
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.running_sums import release_running_sums

MORE = int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
TRIALS = 3_000 * MORE
EPSILON, DELTA = 2.0, 1e-3
UPDATES = 6
ROW = (np.full((1, 2), 0.5**0.5 * (1 - 1e-9)), np.array([[True, False]]))
NOBODY = (np.zeros((0, 2)), np.zeros((0, 2), dtype=bool))
SHAPE = {"dimension": 2, "n_classes": 2, "norm_bound": 1.0, "delta": charged_delta(DELTA)}
pytestmark = pytest.mark.statistical


def event_of(share):
    return running_sums_event(sums_mu(EPSILON, DELTA), updates=UPDATES, moment_share=share, **SHAPE)


def audited(event, *, place=0, releases=UPDATES):
    """Audit one record of a batch against nobody by the likelihood ratio of all releases of the epoch."""
    moments, sums = ROW[0].T @ ROW[0], ROW[1].T.astype(float) @ ROW[0]

    def ratio(record, rng):
        batches, found = [], 0.0
        for number in range(releases):
            batches.append(record if number == place else NOBODY)
            released = release_running_sums(batches, event, rng=rng)
            if number < place:
                continue
            part = event.coefficients[number - place] / PARTS
            found += part * (sums * released.class_sums).sum() / event.sums.class_sigma**2
            if event.sums.moment_sigma:
                found += part * (moments * released.moments).sum() / event.sums.moment_sigma**2
        return float(found)

    rng = SimulationRandom(20_251_211)
    return epsilon_lower_bound(
        one_by_one(ratio), ROW, NOBODY, trials=TRIALS, confidence=0.9999, delta=event.sums.delta, rng=rng
    )


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("share", "place"), [(0.0, 0), (0.5, 4)])
def test_one_record_against_none(share, place):
    bound = audited(event_of(share), place=place)
    assert bound <= EPSILON
    if place == 0:
        assert bound > 0.1 * EPSILON


@pytest.mark.slow
def test_a_twin_that_pays_for_one_release_of_each_total_is_found():
    """The broken twin releases the whole total every time and pays as if a record met one release."""
    told = sums_event(sums_mu(EPSILON, DELTA), moment_share=0.0, **SHAPE)
    broken = RunningSumsEvent(told, 12, (PARTS - 1,), (PARTS - 1,))
    assert audited(broken, releases=12) > EPSILON


@pytest.mark.slow
def test_a_twin_with_a_third_of_the_noise_is_found():
    told = event_of(0.0)
    less = sums_event(3 * told.sums.gaussian_mu(), moment_share=0.0, **SHAPE)
    assert audited(RunningSumsEvent(less, UPDATES, told.decays, told.weights)) > EPSILON
