"""An audit of a gate that runs on stays under the charge and finds a record that is kept longer, or a run unpaid for.

Every bound holds with probability 0.9999, so a sound mechanism fails once in 10,000 seeds.
"""

import os

import numpy as np
import pytest

from privacy.accounting.events import GateWindowEvent
from privacy.evidence import epsilon_lower_bound
from privacy.gate.kanonymity import ThresholdGate
from privacy.gate.threshold import GeometricNoise
from privacy.mechanisms.randomness import SimulationRandom

TRIALS = 100_000 * int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
COPIES, WINDOW = 60, 3
INNER = ThresholdGate(1.0, 1e-6, noise="discrete_laplace").event()
pytestmark = pytest.mark.statistical


def entries(epochs):
    """Return the series' entries for runs of these epochs; None is a new one."""
    found, before = [], None
    for epoch in epochs:
        before = GateWindowEvent.next_of(before, INNER, window=WINDOW, epoch=epoch)
        found.append(before)
    return found


def charged(events):
    costs = [event.cost(adjacency="add_remove") for event in events]
    return sum(cost.epsilon for cost in costs), sum(cost.delta for cost in costs)


def gates(events, *, kept=0):
    """Run the gate over a text that is said often, and count in how many runs its noisy count is high.

    A record of the third upload is there or not; a broken window keeps it for `kept` runs too many.
    """
    noise = GeometricNoise(INNER.noise_scale, None)

    def batch(present, trials, rng):
        high = np.zeros(trials)
        for event in events:
            counts = np.full(trials, COPIES + (present and event.first - kept <= 3 <= event.epoch), dtype=np.int64)
            passed, noisy = noise.release(counts, int(INNER.threshold) + 1, rng=rng)
            high[passed] += noisy > COPIES
        return high

    return batch


def audited(mechanism, delta):
    rng = SimulationRandom(20_261_126)
    return epsilon_lower_bound(mechanism, True, False, trials=TRIALS, confidence=0.9999, delta=delta, rng=rng)


def test_sound_and_a_window_that_keeps_a_record_once_too_often():
    events = entries([None] * 8)
    epsilon, delta = charged(events)
    found = audited(gates(events), delta)
    assert 0.8 * epsilon < found <= epsilon
    # Nor would one run less have been enough.
    assert found > epsilon - INNER.epsilon
    assert audited(gates(events, kept=1), delta) > epsilon


def test_a_repeated_run_is_paid_for_and_a_twin_that_repeats_for_nothing_is_found():
    events = entries([None, None, None, None, 3, None, None])
    epsilon, delta = charged(events)
    found = audited(gates(events), delta)
    assert 0.8 * epsilon < found <= epsilon
    assert found > charged(entries([None] * 8))[0]
