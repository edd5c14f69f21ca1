"""Canary audit of noisy counts and of a sample spread by them: under the charge, and above it for broken twins.

Every bound holds with probability 0.9999, so a sound mechanism fails once in 10,000 seeds.
"""

import os

import numpy as np
import pytest

from learner.strategies.cells import CELLS, record_cells
from learner.strategies.noisy_clusters import NoisyClusters
from privacy.accounting.events import CellCountsEvent, MinibatchSgdEvent
from privacy.accounting.sums import cell_counts_event
from privacy.evidence import epsilon_lower_bound, one_by_one
from privacy.mechanisms.cell_counts import release_cell_counts
from privacy.mechanisms.randomness import SimulationRandom

TRIALS = 10_000 * int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
pytestmark = pytest.mark.statistical


def found(mechanism, data, neighbour, *, trials):
    rng = SimulationRandom(20_261_126)
    return epsilon_lower_bound(mechanism, data, neighbour, trials=trials, confidence=0.9999, delta=0.0, rng=rng)


@pytest.mark.parametrize(("noise", "times", "sound"), [(1.0, 1, True), (0.5, 1, False), (1.0, 2, False)])
def test_counts(noise, times, sound):
    """A record against an empty slot; the twins draw at half the scale, or count a record in two cells."""
    told = cell_counts_event(1.0, 4)

    def ratios(record, trials, rng):
        """Return many releases at once: each is of two cells of its own."""
        event = CellCountsEvent(2 * trials, told.noise_scale * noise)
        own = 2 * np.arange(trials)
        blocks = [own + place for place in record] or [np.empty(0, dtype=np.int64)]
        noisy = release_cell_counts(blocks, event, rng=rng).reshape(trials, 2)
        return (np.abs(noisy) - np.abs(noisy - 1))[:, :times].sum(axis=1)

    bound = found(ratios, range(times), (), trials=TRIALS)
    assert (0.7 < bound <= told.cost().epsilon) if sound else bound > told.cost().epsilon


ALONE = np.eye(5, dtype=np.float32)[:1]
# Others lie in cells of their own.
POOL = np.eye(5, dtype=np.float32)[1:].repeat(4, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("twin", ["", "exact counts", "everybody"])
def test_a_spread_sample(twin):
    """One record, alone in its cell, against an empty slot: whether it is asked, with the noise of a training.

    The twins have rates from exact counts, or a sample that everybody is in at the amplified price.
    """
    inner = 1.0
    sample = NoisyClusters(0.25, epsilon=0.8, spread=2.0)
    assert len(set(record_cells(np.vstack([ALONE, POOL])).tolist())) == 5
    cell = int(record_cells(ALONE)[0])
    counts_of = CellCountsEvent(CELLS, 1e-3) if twin == "exact counts" else sample.counts_event

    def release(first, rng):
        X = np.vstack([first, POOL])
        noisy = release_cell_counts([record_cells(X)], counts_of, rng=rng)
        rates = sample.rates_of(noisy, len(X))
        rows = np.arange(len(X))
        drawn = rows[rng.random(rows.shape) < sample.rate]
        kept = rows if twin == "everybody" else sample.thin(X, drawn, rates, rng)
        told = float(first.any() and 0 in kept) + rng.generator.laplace(scale=1 / inner)
        return told + float(np.abs(noisy[cell]) - np.abs(noisy[cell] - 1)) * sample.counts_event.cost().epsilon

    training = MinibatchSgdEvent(noise_scale=1 / inner, dimension=1)
    charge = sample.counts_event.cost().epsilon + sample.release_event(training).cost().epsilon
    bound = found(one_by_one(release), ALONE, 0 * ALONE, trials=TRIALS)
    assert (bound > charge) if twin else (0.3 * charge < bound <= charge)
