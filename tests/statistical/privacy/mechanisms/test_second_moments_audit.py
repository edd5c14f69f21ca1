"""Canary audit of noisy second moments: under the charge, and above it for a twin with the sensitivity of a length.

Every bound holds with probability 0.9999, so a sound mechanism fails once in 10,000 seeds.
"""

import os

import numpy as np
import pytest

from privacy.accounting.sums import SecondMomentsEvent, second_moments_event
from privacy.evidence import epsilon_lower_bound, one_by_one
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.second_moments import release_second_moments, shortened_rows

# With a third of them the first lower mark is within three standard deviations of what twelve seeds gave.
TRIALS = 30_000 * int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
EPSILON, DELTA = 1.0, 1e-3
pytestmark = pytest.mark.statistical


def audited(event):
    """Audit one record with entries of equal size against an empty slot, by the likelihood ratio."""
    d = event.dimension
    upper = np.triu_indices(d)
    record = np.full((1, d), d**-0.5)
    steps = shortened_rows(record, norm_bound=1.0) / 1024
    shift = (steps.T @ steps)[upper]
    order = 1 if event.noise == "laplace" else 2

    def loss(rows, rng):
        output = release_second_moments([rows], event, rng=rng)[upper]
        return float((np.abs(output - shift) ** order).sum() - (np.abs(output) ** order).sum())

    return epsilon_lower_bound(
        one_by_one(loss),
        record,
        np.zeros((1, d)),
        trials=TRIALS,
        confidence=0.9999,
        delta=event.delta,
        rng=SimulationRandom(20_251_102),
    )


@pytest.mark.slow
@pytest.mark.one_in(4)
@pytest.mark.parametrize(("d", "delta", "least"), [(1, 0.0, 0.8), (1, DELTA, 0.2), (4, 0.0, 0.05), (4, DELTA, 0.05)])
def test_sound(d, delta, least):
    """Noise spread over ten entries hides more of the loss from a count of outcomes than noise on one."""
    event = second_moments_event(EPSILON, d, delta=delta)
    assert least * EPSILON < audited(event) <= EPSILON


@pytest.mark.slow
def test_laplace_noise_for_a_length_is_too_short():
    """The broken twin takes the L2 sensitivity 1 where a record moves the entries by (d + 1) / 2 in L1."""
    assert audited(SecondMomentsEvent(6, 1.0, 0.5 / EPSILON)) > EPSILON


@pytest.mark.slow
def test_the_gaussian_twin_without_its_delta():
    """The broken twin draws at a third of the scale."""
    event = second_moments_event(EPSILON, 1, delta=DELTA)
    assert audited(SecondMomentsEvent(1, 1.0, event.noise_scale / 3, "gaussian", DELTA)) > EPSILON
