"""Thresholds keep their promise in 200 runs, and a twin that forgets the noise does not."""

import numpy as np
import pytest

from learner.estimators import abstaining
from privacy.accounting.counts import class_counts_event
from privacy.accounting.screens import inner_epsilon
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.shares import count_query

N, LABELS, EPSILON, RUNS = 4000, 300, 0.5, 200


def pool(*, seed=5):
    """Return probabilities, and answers right exactly so often but in the surest bin's favour."""
    rng = np.random.default_rng(seed)
    sure = rng.beta(6.0, 1.0, size=N) * 0.5 + 0.5
    return np.stack([sure, 1 - sure], axis=1), rng.random(N) < np.clip(0.5 + 0.52 * (sure - 0.5) / 0.5, 0, 1)


def counted(cells, event, rng):
    return count_query("counts", lambda: cells, event, rng=rng)["counts"]().answer


def runs(*, told=1.0, part=0.9):
    """Yield the thresholds of each run; `told` is the part of the noise that the test is told."""
    probabilities, right = pool()
    cells, rate = abstaining.confidence_cells(probabilities), LABELS / N
    everywhere = class_counts_event(EPSILON * (1 - part), cells=abstaining.POOL_CELLS, counted=1)
    inside = inner_epsilon(EPSILON * part, rate)
    event = class_counts_event(inside, cells=abstaining.SAMPLE_CELLS, counted=1)
    for seed in range(RUNS):
        rng, taken = SimulationRandom(seed), np.random.default_rng(seed).random(N) < rate
        told_pool = counted(cells[:, np.newaxis], everywhere, rng)
        outcomes = abstaining.outcome_cells(cells[taken], right[taken], abstaining.bins(told_pool))
        sample = counted(outcomes, event, rng)
        yield told_pool, abstaining.thresholds(told_pool, sample, scale=event.scale * told)


def kept(found, precision):
    """Return whether a threshold keeps its precision; None where there is none."""
    probabilities, right = pool()
    (one,) = (each for each in found if each.precision == precision)
    if one.threshold is None:
        return None
    return bool(right[probabilities.max(axis=1) >= one.threshold].mean() >= precision)


@pytest.mark.parametrize("precision", [0.9, 0.95])
def test_a_threshold_keeps_its_share_of_right_answers(precision):
    """Each threshold misses in at most 5 % of all asks: of 200, more than 21 do with probability 4e-4."""
    found = [kept(thresholds, precision) for _pool, thresholds in runs()]
    assert sum(one is False for one in found) <= 21
    assert sum(one is True for one in found) > 50


@pytest.mark.parametrize(("told", "sound"), [(1.0, True), (0.02, False)])
def test_the_test_knows_the_noise(told, sound):
    """Under as many wrong answers as allowed; the broken twin is told a fiftieth of the noise."""
    rng, missed, runs_here = np.random.default_rng(11), 0, 600
    scale, n = 8.0, 60
    for _ in range(runs_here):
        wrong = rng.binomial(n, 1 / 20)
        noises = rng.geometric(1 - np.exp(-1 / scale), 4)
        noisy_wrong, noisy_right = wrong + noises[0] - noises[1], n - wrong + noises[2] - noises[3]
        chance = abstaining.chance_of(noisy_wrong, noisy_right, noises=1, scale=scale * told, per_wrong=20)
        missed += chance <= abstaining.MISSED
    # 5 % of 600 are 30; more than 55 have probability 1e-5.
    assert (missed <= 55) == sound


def test_chances_are_those_of_draws():
    rng, scale, n, s = np.random.default_rng(2), 1.5, 80, 10
    draws = 400_000
    wrong = rng.binomial(n, 1 / s, size=draws)
    noise = [rng.geometric(1 - np.exp(-1 / scale), (2, draws, 2)) for _ in range(2)]
    extra = [(one[..., 0] - one[..., 1]).sum(axis=0) for one in noise]
    statistic = (s - 1) * (wrong + extra[0]) - (n - wrong + extra[1])
    for at in (-60, -20, 0, 40):
        # A statistic `at` of n noisy answers: wrong and right that add up to n.
        told = (at + n) / s
        if told == int(told):
            found = abstaining.chance_of(int(told), n - int(told), noises=2, scale=scale, per_wrong=s)
            assert found == pytest.approx((statistic <= at).mean(), abs=4e-3)


def test_bins_are_ordered_and_hold_every_cell():
    rng = np.random.default_rng(3)
    for _ in range(50):
        firsts = abstaining.bins(rng.normal(0, 30, abstaining.POOL_CELLS))
        assert (np.diff(firsts) <= 0).all()
        assert firsts[-1] == 0
    cells = np.arange(abstaining.POOL_CELLS)
    outcomes = abstaining.outcome_cells(cells, np.ones(len(cells), dtype=bool), firsts)
    assert outcomes.shape == (len(cells), 1)
    assert 0 <= outcomes.min() <= outcomes.max() < abstaining.SAMPLE_CELLS


def test_few_records_give_no_threshold():
    nothing = np.zeros(abstaining.SAMPLE_CELLS)
    found = abstaining.thresholds(np.zeros(abstaining.POOL_CELLS), nothing, scale=1.0)
    assert [one.threshold for one in found] == [None] * len(abstaining.WANTED)
