"""Noisy steps have the noise they are charged for; an audit stays under the charge and finds broken twins.

Every bound holds with probability 0.9999, so a sound mechanism fails once in 10,000 seeds.
"""

import os
from dataclasses import replace

import numpy as np
import pytest

from privacy.accounting.steps import GradientStepsEvent, gradient_steps_event
from privacy.evidence import epsilon_lower_bound, one_by_one
from privacy.mechanisms.gradient_steps import NoisySteps
from privacy.mechanisms.randomness import SimulationRandom

MORE = int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
TRIALS = 20_000 * MORE
# Enough to find a twin whose ratio is three times the one it claims.
FEW = 6_000 * MORE
EPSILON, DELTA, STEPS = 1.0, 1e-3, 4
ROW = np.full((1, 2), 0.5**0.5 * (1 - 1e-9))
NOBODY = np.zeros((0, 2))
pytestmark = pytest.mark.statistical


def event_of(adjacency="null", *, center=0.2):
    shape = {"dimension": 2, "n_classes": 2, "norm_bound": 1.0, "residual_bound": 0.3, "center_share": center}
    return gradient_steps_event(EPSILON, DELTA, steps=STEPS, adjacency=adjacency, **shape)


def audited(event, data, neighbour, *, claimed=None, trials=TRIALS):
    """Audit one record, whose residuals follow what was released, by the likelihood ratio of all that is released."""
    told = claimed or event

    def residual(weights, rows):
        """Point where the last step led: another adaptive choice for each outcome, always longer than the bound."""
        turned = np.array([[1.0, -1.0]]) * (1.0 if weights[0, 0] >= 0 else -1.0)
        return np.repeat(turned, len(rows), axis=0) * (1 if rows.sum() >= 0 else -1)

    def part(weights, rows):
        moved = residual(weights, np.abs(rows)) if len(rows) else np.zeros((0, 2))
        sign = 1.0 if rows.sum() >= 0 else -1.0
        return sign * told.residual_bound / 2**0.5 * moved.T @ np.abs(rows)

    def ratio(rows, rng):
        noisy = NoisySteps(rows, event, rng=rng)
        there, here = len(neighbour), len(data)
        found = ((noisy.count - there) ** 2 - (noisy.count - here) ** 2) / event.count_sigma**2
        if noisy.row_sum is not None:
            with_it, without = data.sum(axis=0), neighbour.sum(axis=0)
            found += (((noisy.row_sum - without) ** 2).sum() - ((noisy.row_sum - with_it) ** 2).sum()) / (
                event.center_sigma**2
            )
        weights = np.zeros((2, 2))
        for _step in range(event.steps):
            moved = residual(weights, np.abs(rows)) if len(rows) else np.zeros((0, 2))
            released = noisy.release(moved)
            with_it, without = part(weights, data), part(weights, neighbour)
            found += (((released - without) ** 2).sum() - ((released - with_it) ** 2).sum()) / event.sigma**2
            weights = released
        return float(found)

    rng = SimulationRandom(20_251_205)
    return epsilon_lower_bound(
        one_by_one(ratio), data, neighbour, trials=trials, confidence=0.9999, delta=told.delta, rng=rng
    )


@pytest.mark.slow
@pytest.mark.parametrize("center", [0.0, 0.2])
def test_one_record_against_none(center):
    assert 0.2 * EPSILON < audited(event_of(center=center), ROW, NOBODY) <= EPSILON


@pytest.mark.slow
def test_one_record_against_another():
    assert audited(event_of("replace"), ROW, -ROW, trials=FEW) <= EPSILON


@pytest.mark.slow
def test_a_twin_that_prices_one_step_of_many_is_found():
    """The broken twin has the noise of a single step in each of sixteen."""
    told = event_of()
    broken = replace(told, steps=16, sigma=told.sigma / 2)
    assert audited(broken, ROW, NOBODY, claimed=told, trials=FEW) > EPSILON


@pytest.mark.slow
def test_a_twin_with_a_third_of_the_noise_is_found():
    told = event_of()
    broken = replace(told, sigma=told.sigma / 3, count_sigma=told.count_sigma / 3)
    assert audited(broken, ROW, NOBODY, claimed=told, trials=FEW) > EPSILON


@pytest.mark.slow
def test_a_twin_that_does_not_price_the_sum_of_rows_is_found():
    """The broken twin has the noise that steps alone would need, and tells the sum with a fifth of it."""
    told = event_of()
    steps = event_of(center=0.0)
    broken = replace(told, sigma=steps.sigma, count_sigma=steps.count_sigma, center_sigma=told.center_sigma / 5)
    assert audited(broken, ROW, NOBODY, claimed=told, trials=FEW) > EPSILON


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (1.01, False), (0.99, False)])
def test_noise_variance(factor, accepted):
    """Seeded, 4.2 sigma: false alarm 3e-5; a scale 1 % off stands 6 or more away."""
    event = GradientStepsEvent(1, 900, 450, 1.0, 0.3, 3.0 * factor, 5.0)
    draws = NoisySteps(np.zeros((0, 900)), event, rng=SimulationRandom(7)).release(np.zeros((0, 450))) / 3.0
    z_score = ((draws**2).mean() - 1) * np.sqrt(draws.size / 2)
    assert (abs(z_score) < 4.2) == accepted
