"""Counts of classes have the noise they are charged for; an audit stays under the charge and finds broken twins.

Every bound holds with probability 0.9999, so a sound mechanism fails once in 10,000 seeds.
"""

import math
import os
from dataclasses import replace

import numpy as np
import pytest

from learner.estimators import abstaining
from privacy.accounting.counts import class_counts_event
from privacy.accounting.events import ClassCountsEvent, SecretBlockEvent, SecretSeriesEvent
from privacy.evidence import epsilon_lower_bound, one_by_one
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.shares import compared_cells, count_query

MORE = int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
TRIALS, RATE = 20_000 * MORE, 0.5
pytestmark = pytest.mark.statistical
# A record whose label, class 1, is not the predicted class 0.
ONE = compared_cells(np.array([1]), np.array([0]), np.array([0]), n_classes=2)


def answer(cells, event, rng):
    return count_query("counts", lambda: cells, event, rng=rng)["counts"]().answer


def audited(mechanism, charged):
    found = epsilon_lower_bound(
        one_by_one(mechanism), ONE, ONE[:0], trials=TRIALS, confidence=0.9999, rng=SimulationRandom(20_261_130)
    )
    return found / charged


@pytest.mark.parametrize(("counted", "sound"), [(2, True), (1, False)])
def test_labels_against_predictions(counted, sound):
    """The broken twin prices one cell of a record that has two."""
    priced = class_counts_event(1.0, cells=9, counted=counted)
    event = replace(priced, counted=2)

    def sum_of_both(cells, rng):
        noisy = answer(cells, event, rng)
        return float(sum(np.clip(noisy[cell], 0, 1) for cell in ONE[0]))

    part = audited(sum_of_both, priced.cost().epsilon)
    assert (0.5 < part <= 1) if sound else part > 1


@pytest.mark.parametrize(("readings", "sound"), [(1, True), (4, False)])
def test_a_secret_sample_read_once_more(readings, sound):
    """The broken twin reads the sample for every ask and pays for the first one."""
    series = SecretSeriesEvent((RATE,), (1.0,), (0.0,))
    event = class_counts_event(1.0, cells=9, counted=2)
    charged = SecretBlockEvent(series, event, 1, (0,)).cost().epsilon

    def readings_of_a_sample(cells, rng):
        sampled = cells if rng.random() < RATE else cells[:0]
        noisy = sum(answer(sampled, event, rng) for _ in range(readings))
        return float(sum(np.clip(noisy[cell], 0, readings) for cell in ONE[0]))

    part = audited(readings_of_a_sample, charged)
    assert (0.4 < part <= 1) if sound else part > 1


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (1.01, False), (0.99, False)])
def test_noise_of_counts(factor, accepted):
    """Mean size, seeded, 4.2 sigma: false alarm 3e-5. Noise that is 1 % off passes six or more away."""
    draws = 500_000
    sizes = np.abs(
        answer(np.empty((0, 1), dtype=np.int64), ClassCountsEvent(draws, 1, 20.0 * factor), SimulationRandom(4))
    )
    p = math.exp(-1 / 20)
    mean = 2 * p / (1 - p**2)
    deviation = math.sqrt(2 * p / (1 - p) ** 2 - mean**2)
    assert (abs(sizes.mean() - mean) < 4.2 * deviation / math.sqrt(draws)) == accepted


@pytest.mark.parametrize(("readings", "sound"), [(1, True), (2, False)])
def test_outcomes_of_one_release(readings, sound):
    """Counts that choose a threshold; the broken twin counts a record in its bin and in every one below."""
    event = class_counts_event(1.0, cells=abstaining.SAMPLE_CELLS, counted=1)
    one = abstaining.outcome_cells(np.array([3]), np.array([False]), np.array([5, 4, 3, 2, 1, 0]))

    def counted(cells, rng):
        places = [cells + 2 * step for step in range(readings)]
        noisy = answer(np.concatenate(places, axis=1), replace(event, counted=readings), rng)
        return float(sum(np.clip(noisy[one[0, 0] + 2 * step], 0, 1) for step in range(readings)))

    found = epsilon_lower_bound(
        one_by_one(counted), one, one[:0], trials=TRIALS, confidence=0.9999, rng=SimulationRandom(20_261_131)
    )
    part = found / event.cost().epsilon
    assert (0.5 < part <= 1) if sound else part > 1
