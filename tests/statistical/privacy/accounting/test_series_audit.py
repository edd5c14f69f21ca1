"""An audit of a series of secret blocks stays under the charge and finds a twin whose coins are not exclusive.

Every bound holds with probability 0.9999, so a sound mechanism fails once in 10,000 seeds.
"""

import os

import numpy as np
import pytest

from privacy.accounting.events import MinibatchSgdEvent
from privacy.accounting.series import SecretBlockEvent, SecretSeriesEvent
from privacy.evidence import epsilon_lower_bound
from privacy.mechanisms.randomness import SimulationRandom

TRIALS = 200_000 * int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
RATES, EPSILONS = (0.3, 0.3, 0.3), (2.0, 2.0, 2.0)
pytestmark = pytest.mark.statistical


def series(*, exclusive):
    """Each block says by randomised response whether the record is in it; the sum of loud blocks is what is seen."""

    def batch(present, trials, rng):
        numbers = rng.random((trials, len(RATES) + 1))
        if exclusive:
            edges = np.cumsum(RATES)
            inside = np.searchsorted(edges, numbers[:, 0])[:, None] == np.arange(len(RATES))
        else:
            inside = rng.random((trials, len(RATES))) < RATES
        quiet = 1 / (1 + np.exp(EPSILONS))
        chance = np.where(inside & present, 1 - quiet, quiet)
        return (numbers[:, 1:] < chance).sum(axis=1)

    return batch


def audited(mechanism):
    rng = SimulationRandom(20_251_203)
    return epsilon_lower_bound(mechanism, True, False, trials=TRIALS, confidence=0.9999, rng=rng)


def test_sound_and_a_twin_that_is_not():
    """A record in several blocks at once is loud in all of them."""
    charge = SecretSeriesEvent(RATES, EPSILONS, (0.0, 0.0, 0.0)).cost().epsilon
    found = audited(series(exclusive=True))
    assert 0.3 * charge < found <= charge
    broken = audited(series(exclusive=False))
    assert broken > found * 1.1


def test_a_twin_whose_record_is_in_every_block():
    """The broken twin puts records into all blocks, as parts of one sample would be that is released three times."""

    def batch(present, trials, rng):
        inside = (rng.random((trials, 1)) < sum(RATES)) & present
        quiet = 1 / (1 + np.exp(EPSILONS))
        return (rng.random((trials, len(RATES))) < np.where(inside, 1 - quiet, quiet)).sum(axis=1)

    assert audited(batch) > SecretSeriesEvent(RATES, EPSILONS, (0.0, 0.0, 0.0)).cost().epsilon


def paid(blocks):
    """Return what the ledger's entries for releases of these blocks cost together, one after the other."""
    total, before = 0.0, None
    for block in blocks:
        before = SecretBlockEvent.next_of(before, MinibatchSgdEvent(1 / EPSILONS[0], 3), block=block, rates=RATES)
        total += before.cost().epsilon
    return total


def releases(*, reads):
    """Release after release by randomised response; `reads` says of which block each of them reads the records."""

    def batch(present, trials, rng):
        place = np.searchsorted(np.cumsum(RATES), rng.random(trials)) + 1
        quiet = 1 / (1 + np.exp(EPSILONS[0]))
        loud = np.zeros(trials, dtype=int)
        for blocks in reads:
            inside = np.isin(place, blocks) & present
            loud += rng.random(trials) < np.where(inside, 1 - quiet, quiet)
        return loud

    return batch


def test_releases_that_add_up_and_a_twin_that_reads_earlier_blocks_again():
    """Sums of disjoint blocks add up. The broken twin keeps none and reads all earlier blocks with every release."""
    charge = paid([1, 2, 3])
    assert charge == pytest.approx(SecretSeriesEvent(RATES, EPSILONS, (0.0, 0.0, 0.0)).cost().epsilon, rel=1e-9)
    found = audited(releases(reads=[[1], [2], [3]]))
    assert 0.3 * charge < found <= charge
    assert audited(releases(reads=[[1], [1, 2], [1, 2, 3]])) > 1.5 * charge


def test_a_second_attempt_is_paid_for_and_a_twin_that_repeats_for_nothing_is_found():
    """An attempt that died may have released; the broken twin pays for its block once."""
    found = audited(releases(reads=[[1], [1]]))
    assert 0.3 * paid([1, 1]) < found <= paid([1, 1])
    assert found > paid([1])
